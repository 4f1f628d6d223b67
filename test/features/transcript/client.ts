/** A client that keeps transcripts by baselines, operations and pages, as any client would: it knows the rules of the operations and no more. */
import assert from 'node:assert/strict'
import {
  type Attachment,
  type Interaction,
  type Item,
  type Meta,
  type MetaChange,
  type Op,
  type Prompt,
  readTranscript,
  type Task,
  type Todo,
  type TranscriptPage
} from '../../../features/transcript/index.ts'
import { Timeline } from '../../../features/transcript/timeline.ts'
import type { Frame, SocketClient, TestKernel } from '../../../kernel/testing.ts'

/** A server, and which session of it is meant. */
export type Server = Pick<TestKernel, 'call' | 'connect'> & { readonly session_id: string }

export interface View {
  readonly items: readonly Item[]
  readonly tasks: readonly Task[]
  readonly interactions: readonly Interaction[]
  readonly attachments: readonly Attachment[]
  readonly todos: readonly Todo[]
  readonly prompts: readonly Prompt[]
  readonly meta: Meta
}

class Copy {
  timeline = new Timeline()
  tasks = new Map<string, Task>()
  interactions = new Map<string, Interaction>()
  attachments = new Map<string, Attachment>()
  todos = new Map<string, Todo>()
  prompts = new Map<string, Prompt>()
  meta: Meta = {}

  constructor(view: View) {
    for (const item of view.items) {
      if (item.kind === 'marker') this.timeline.apply({ op: 'marker.upsert', item })
      else if (item.kind === 'taskref') this.timeline.apply({ op: 'taskref.upsert', item })
      else {
        const { steps, ...turn } = item
        this.timeline.apply({ op: 'turn.upsert', turn })
        for (const { frames, ...step } of steps) {
          this.timeline.apply({ op: 'step.upsert', turnId: turn.turnId, step })
          for (const frame of frames) this.timeline.apply({ op: 'frame.upsert', turnId: turn.turnId, stepId: step.stepId, frame })
        }
      }
    }
    for (const each of view.tasks) this.tasks.set(each.taskId, each)
    for (const each of view.interactions) this.interactions.set(each.interactionId, each)
    for (const each of view.attachments) this.attachments.set(each.attachmentId, each)
    for (const each of view.todos) this.todos.set(each.todoId, each)
    for (const each of view.prompts) this.prompts.set(each.promptId, each)
    this.meta = view.meta
  }

  apply(op: Op): void {
    switch (op.op) {
      case 'task.upsert':
        this.tasks.set(op.task.taskId, op.task)
        break
      case 'interaction.upsert':
        this.interactions.set(op.interaction.interactionId, op.interaction)
        break
      case 'attachment.upsert':
        this.attachments.set(op.attachment.attachmentId, op.attachment)
        break
      case 'todo.upsert':
        this.todos.set(op.todo.todoId, op.todo)
        break
      case 'prompt.upsert':
        this.prompts.set(op.prompt.promptId, op.prompt)
        break
      case 'meta.merge':
        this.meta = merge(this.meta, op.meta)
        break
      default: {
        if (op.op === 'items.remove') this.#forget(op.ids)
        assert.ok(this.timeline.apply(op), `a gap: ${JSON.stringify(op)}`)
      }
    }
  }

  #forget(ids: readonly string[]): void {
    const frames = this.timeline.items.flatMap(item =>
      item.kind === 'turn' && ids.includes(item.turnId) ? item.steps.flatMap(step => step.frames) : []
    )
    const calls = new Set(frames.flatMap(frame => (frame.kind === 'tool' ? [frame.toolCallId] : [])))
    for (const [id, { toolCallId }] of this.interactions) if (calls.has(toolCallId ?? '')) this.interactions.delete(id)
  }

  view(): View {
    const { timeline, tasks, interactions, attachments, todos, prompts, meta } = this
    return {
      items: timeline.items,
      tasks: [...tasks.values()],
      interactions: [...interactions.values()],
      attachments: [...attachments.values()],
      todos: [...todos.values()],
      prompts: [...prompts.values()],
      meta
    }
  }
}

function merge(meta: Meta, { goal, modes, activity, agent }: MetaChange): Meta {
  const next: { -readonly [K in keyof Meta]: Meta[K] } = { ...meta }
  if (goal === null) delete next.goal
  else if (goal) next.goal = goal
  if (modes) {
    const all = Object.entries({ ...meta.modes, ...modes }).filter(([, mode]) => mode !== null && mode !== undefined)
    if (all.length > 0) next.modes = Object.fromEntries(all) as NonNullable<Meta['modes']>
    else delete next.modes
  }
  if (activity) next.activity = activity
  if (agent) next.agent = { ...meta.agent, ...agent }
  return next
}

/** One client and its transcripts of one session, over sockets that come and go. */
export class TranscriptClient {
  readonly #copies = new Map<string, Copy>()
  /** Batches since the last baseline, by agent: a page may be older than they are. */
  readonly #batches = new Map<string, { readonly seq: number; readonly ops: readonly Op[] }[]>()
  readonly #lacks = new Set<string>()
  readonly seqs = new Map<string, number>()
  resets = 0
  #socket: SocketClient | undefined
  #read = 0

  /** Subscribes over a new socket, from where it left off. */
  async connect(server: Server, grades: Readonly<Record<string, string>> = { '*': 'delta' }): Promise<void> {
    this.#socket = await server.connect()
    this.#read = 0
    const transcript_since = Object.fromEntries(this.seqs)
    const { code } = await this.#socket.request('subscribe_v2', { session_id: server.session_id, transcript: grades, transcript_since })
    assert.equal(code, 0)
  }

  drop(): void {
    this.#take()
    this.#socket?.terminate()
    this.#socket = undefined
  }

  /** Everything that was sent has been applied, and what is missing of the past is read. */
  async settle(server: Server): Promise<void> {
    await this.#socket?.request('unsubscribe_v2', { session_id: 'session_none' })
    this.#take()
    for (const agent of [...this.#lacks]) {
      const page = await pageOf(server, agent)
      this.#lacks.delete(agent)
      const copy = new Copy(page)
      this.#take()
      for (const { seq, ops } of this.#batches.get(agent) ?? []) if (seq > (page.seq ?? 0)) for (const op of ops) copy.apply(op)
      this.#copies.set(agent, copy)
    }
  }

  view(agent = 'main'): View | undefined {
    return this.#copies.get(agent)?.view()
  }

  get frames(): readonly Frame[] {
    return this.#socket?.frames ?? []
  }

  #take(): void {
    const frames = this.frames.slice(this.#read)
    this.#read += frames.length
    for (const { type, payload } of frames) {
      if (type !== 'transcript.reset' && type !== 'transcript.ops') continue
      const { agent_id, seq } = payload as { agent_id: string; seq: number }
      const last = this.seqs.get(agent_id) ?? 0
      this.seqs.set(agent_id, seq)
      if (type === 'transcript.reset') {
        assert.ok(seq >= last, `a baseline with ${seq} after ${last}`)
        this.resets++
        this.#copies.set(agent_id, new Copy(payload.snapshot))
        this.#batches.set(agent_id, [])
        if (payload.has_more_older) this.#lacks.add(agent_id)
      } else {
        assert.ok(seq > last, `batch ${seq} after ${last}`)
        this.#batches.get(agent_id)?.push({ seq, ops: payload.ops })
        if (!this.#lacks.has(agent_id)) for (const op of payload.ops) this.#copies.get(agent_id)?.apply(op)
      }
    }
  }
}

export async function pageOf(server: Server, agent_id = 'main'): Promise<TranscriptPage> {
  const { code, data } = await server.call(readTranscript, {
    params: { session_id: server.session_id },
    query: { agent_id, page_size: 100 }
  })
  assert.equal(code, 0)
  return data
}

/** What a client and a page have in common, with entities by their ids. */
export function common({ items, tasks, interactions, attachments, todos, prompts, meta }: View): unknown {
  const sorted = <T extends object>(all: readonly T[]) => [...all].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  return JSON.parse(
    JSON.stringify({
      items,
      tasks: sorted(tasks),
      interactions: sorted(interactions),
      attachments: sorted(attachments),
      todos: sorted(todos),
      prompts: sorted(prompts),
      meta
    })
  )
}
