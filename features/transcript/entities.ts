/** What stands beside the timeline of an agent, as it follows from its records: tasks, interactions, attachments, prompts, the todo list, modes. */
import { sentParts } from '../agent/index.ts'
import { type CoreRecord, coreRecord, type HistoryRecord, isUserInput, sessionForked, type WirePart } from '../history/index.ts'
import { interactionEnded, interactionRequested } from '../interactions/index.ts'
import { taskBegun, taskEnded } from '../tasks/index.ts'
import { todoRecord } from '../todo/index.ts'
import { Budget } from './budget.ts'
import { attachmentsOf, isShownInput, isShownInside, withoutBytes } from './input.ts'
import { endOf, requestOf } from './interaction-view.ts'
import { merged, metaChange, spending } from './meta.ts'
import { phaseAfter } from './phase.ts'
import type { Attachment, Interaction, Meta, MetaChange, Op, Prompt, Snapshot, Task, Todo } from './shapes.ts'
import { subagentTask, taskOf } from './task-view.ts'
import { turnId } from './timeline.ts'

export interface SavedEntities {
  readonly tasks: readonly Task[]
  readonly interactions: readonly Interaction[]
  readonly attachments: readonly Attachment[]
  readonly prompts: readonly Prompt[]
  readonly todo: Todo | undefined
  readonly meta: Meta
  readonly contents: readonly (readonly [string, readonly WirePart[]])[]
  readonly anchors: readonly (readonly [string, number])[]
  readonly taken: readonly string[]
  readonly counted?: string
  /** With their sizes, those first that lose their large fields first. */
  readonly sizes: readonly (readonly [string, number])[]
}

/** Bytes of requests, contents and outputs that are kept with the entities; of older ones only the head stays. */
const keptBytes = 512 * 1024

const iso = (time: number | undefined): string => new Date(time ?? 0).toISOString()

export class Entities {
  readonly tasks = new Map<string, Task>()
  readonly interactions = new Map<string, Interaction>()
  readonly attachments = new Map<string, Attachment>()
  readonly prompts = new Map<string, Prompt>()
  todo: Todo | undefined
  meta: Meta = {}
  /** Contents of prompts that are not over. */
  readonly #contents = new Map<string, readonly WirePart[]>()
  /** Turns whose calls interactions belong to. */
  readonly #anchors = new Map<string, number>()
  /** Steered prompts that became messages of the turn. */
  readonly #taken = new Set<string>()
  /** The step whose spending counts since its answer. */
  #counted: string | undefined
  readonly #budget = new Budget(keptBytes, id => this.#slim(id))
  #ops: Op[] = []

  static load(saved: SavedEntities): Entities {
    const made = new Entities()
    for (const task of saved.tasks) made.tasks.set(task.taskId, task)
    for (const interaction of saved.interactions) made.interactions.set(interaction.interactionId, interaction)
    for (const attachment of saved.attachments) made.attachments.set(attachment.attachmentId, attachment)
    for (const prompt of saved.prompts) made.prompts.set(prompt.promptId, prompt)
    for (const [id, content] of saved.contents) made.#contents.set(id, content)
    for (const [id, turn] of saved.anchors) made.#anchors.set(id, turn)
    for (const id of saved.taken) made.#taken.add(id)
    made.#counted = saved.counted
    for (const [id, size] of saved.sizes) made.#budget.put(id, size)
    made.todo = saved.todo
    made.meta = saved.meta
    return made
  }

  save(): SavedEntities {
    const { todo, meta } = this
    return {
      tasks: [...this.tasks.values()],
      interactions: [...this.interactions.values()],
      attachments: [...this.attachments.values()],
      prompts: [...this.prompts.values()],
      contents: [...this.#contents],
      anchors: [...this.#anchors],
      taken: [...this.#taken],
      ...(this.#counted === undefined ? {} : { counted: this.#counted }),
      sizes: this.#budget.sizes(),
      todo,
      meta
    }
  }

  /** As pages and baselines show them. */
  shown(): Omit<Snapshot, 'items' | 'hasMoreOlder'> {
    return {
      tasks: [...this.tasks.values()],
      interactions: [...this.interactions.values()],
      attachments: [...this.attachments.values()],
      todos: this.todo ? [this.todo] : [],
      prompts: [...this.prompts.values()],
      meta: this.meta
    }
  }

  pending(): string[] {
    return [...this.interactions.values()].flatMap(({ interactionId, state }) => (state === 'pending' ? [interactionId] : []))
  }

  /** The operations of a record. `turn`: the turn that runs or ran last. */
  take(record: HistoryRecord, turn: number | undefined): Op[] {
    this.#ops = []
    this.#other(record)
    const core = coreRecord(record)
    if (core) this.#core(core)
    const phase = phaseAfter(record, this.meta.agent?.phase, turn)
    const activity = core?.type === 'turn.started' ? 'turn' : core?.type === 'turn.ended' ? 'idle' : undefined
    if (phase) this.#merge({ ...(activity ? { activity } : {}), agent: { phase } })
    return this.#ops
  }

  get isOpen(): boolean {
    const tasks = [...this.tasks.values()].some(({ state }) => state === 'running')
    return tasks || [...this.interactions.values()].some(({ state }) => state === 'pending')
  }

  /** Undo took these turns: what belongs to them goes, and what it takes back is as it was. */
  undo(
    turns: readonly number[],
    before: { readonly todo: Todo | undefined; readonly plan: NonNullable<Meta['modes']>['plan'] | undefined },
    time: number | undefined
  ): Op[] {
    this.#ops = []
    const gone = [...this.#anchors].flatMap(([id, turn]) => (turns.includes(turn) ? id : []))
    // A client forgets what the calls of a removed turn asked, and need not have them. Of grade `turn` it has none: for it by name.
    for (const id of gone) {
      const toolCallId = this.interactions.get(id)?.toolCallId
      if (toolCallId !== undefined) this.#ops.push(asking(turnId(this.#anchors.get(id) ?? 0), toolCallId))
    }
    this.#ops.push({ op: 'items.remove', ids: [...turns.map(turnId), ...gone] })
    for (const id of gone) {
      this.interactions.delete(id)
      this.#anchors.delete(id)
      this.#budget.forget(id)
    }
    if (!same(before.todo, this.todo)) this.#setTodo(before.todo ?? { todoId: 'todo', items: [], updatedAt: iso(time) })
    if (!same(before.plan, this.meta.modes?.plan)) this.#merge({ modes: { plan: before.plan ?? null } })
    return this.#ops
  }

  /** A client that removes a turn removes what its calls asked. Operations that tell the turn anew have these behind them. */
  askedIn(ops: readonly Op[]): Op[] {
    if (!ops.some(({ op }) => op === 'items.remove')) return []
    const calls = new Set(ops.flatMap(op => (op.op === 'frame.upsert' && op.frame.kind === 'tool' ? [op.frame.toolCallId] : [])))
    const asked = [...this.interactions.values()].filter(({ toolCallId }) => toolCallId !== undefined && calls.has(toolCallId))
    return asked.map(interaction => ({ op: 'interaction.upsert', interaction }))
  }

  #core(record: CoreRecord): void {
    const { time } = record
    switch (record.type) {
      case 'prompt.accepted': {
        const { prompt_id: promptId, content, origin, starts } = record
        this.#contents.set(promptId, content)
        const status = starts ? 'running' : 'queued'
        const sent = withoutBytes(sentParts(content, origin))
        this.#prompt({ promptId, status, userMessageId: promptId, content: sent, createdAt: iso(time) })
        break
      }
      case 'prompt.steered':
        for (const id of record.prompt_ids) this.#changePrompt(id, { status: 'running', steeredAt: iso(time) })
        break
      case 'prompt.settled':
        for (const id of record.prompt_ids) {
          this.#contents.delete(id)
          this.#changePrompt(id, { status: record.status, finishedAt: iso(time) })
        }
        break
      case 'turn.started': {
        const content = this.#contents.get(record.prompt_id ?? '')
        const { currentTurn, ...usage } = this.meta.agent?.usage ?? {}
        if (currentTurn) this.#merge({ agent: { usage } })
        if (record.prompt_id !== undefined) this.#changePrompt(record.prompt_id, { status: 'running' })
        if (content && isShownInput(record.origin)) for (const each of attachmentsOf(content, turnId(record.turn_id))) this.#attach(each)
        break
      }
      case 'message': {
        const { origin, content, prompt_id, id, turn_id } = record
        if (content && turn_id !== undefined && isShownInside(origin)) {
          for (const each of attachmentsOf(content, prompt_id ?? id ?? '')) this.#attach(each)
        }
        if (prompt_id !== undefined && content && isUserInput(origin)) this.#taken.add(prompt_id)
        break
      }
      case 'turn.ended':
        // What was handed to the turn and did not become a message waits again.
        for (const prompt of [...this.prompts.values()]) {
          if (prompt.steeredAt === undefined || prompt.status !== 'running' || this.#taken.has(prompt.promptId)) continue
          const { steeredAt: _, ...waiting } = prompt
          this.#prompt({ ...waiting, status: 'queued' })
        }
        this.#taken.clear()
        break
      case 'step.message':
      case 'step.end': {
        const step = `${record.turn_id}.${record.step}`
        if (record.usage && this.#counted !== step) this.#merge(spending(this.meta, record.model ?? '', record.usage, true))
        if (record.usage) this.#counted = step
        break
      }
      case 'tokens.spent':
        this.#merge(spending(this.meta, record.model, record.usage, false))
        break
      case 'context.compacted':
        if (record.result) this.#merge({ agent: { contextTokens: record.result.tokens_after } })
        break
      case 'context.undone':
        this.#merge({ agent: { contextTokens: record.context_tokens } })
        break
      default:
        break
    }
  }

  #other(record: HistoryRecord): void {
    const at = iso(record.time)
    switch (record.type) {
      case interactionRequested.type: {
        if (!interactionRequested.is(record)) break
        const { interaction, turn } = requestOf(record)
        if (turn !== undefined) this.#anchors.set(interaction.interactionId, turn)
        this.#interaction(interaction)
        break
      }
      case interactionEnded.type: {
        const known = interactionEnded.is(record) ? this.interactions.get(record.id) : undefined
        if (known && interactionEnded.is(record)) this.#interaction({ ...known, ...endOf(known.interactionKind, record) })
        break
      }
      case taskBegun.type:
        if (taskBegun.is(record)) this.#task(taskOf(record.info, this.tasks.get(record.info.taskId)))
        break
      case taskEnded.type:
        if (taskEnded.is(record)) this.#task({ ...taskOf(record.info, this.tasks.get(record.info.taskId)), outputTail: record.tail })
        break
      case todoRecord.type:
        if (todoRecord.is(record)) this.#setTodo({ todoId: 'todo', items: record.todos.map(item => ({ ...item })), updatedAt: at })
        break
      case sessionForked.type:
        this.#forked(at)
        break
      default: {
        const change = metaChange(record)
        if (change) this.#merge(change)
        const task = subagentTask(record, this.tasks.values())
        if (task) this.#task(task)
      }
    }
  }

  /** What must not exist twice is over in a copy. */
  #forked(at: string): void {
    if (this.meta.goal) this.#merge({ goal: null })
    for (const task of [...this.tasks.values()]) if (task.state === 'running') this.#task({ ...task, state: 'lost', endedAt: at })
    for (const each of [...this.interactions.values()]) if (each.state === 'pending') this.#interaction({ ...each, state: 'cancelled' })
    // Nobody was told of them here.
    for (const { promptId, finishedAt } of this.prompts.values()) {
      if (finishedAt !== undefined) continue
      this.prompts.delete(promptId)
      this.#contents.delete(promptId)
    }
  }

  #setTodo(todo: Todo): void {
    this.todo = todo
    this.#ops.push({ op: 'todo.upsert', todo })
  }

  #task(task: Task): void {
    this.tasks.set(task.taskId, task)
    if (task.state !== 'running') this.#budget.put(task.taskId, task.outputTail.length + (task.resultSummary?.length ?? 0))
    this.#ops.push({ op: 'task.upsert', task })
  }

  #interaction(interaction: Interaction): void {
    this.interactions.set(interaction.interactionId, interaction)
    this.#ops.push({ op: 'interaction.upsert', interaction })
    if (interaction.state !== 'pending') this.#budget.put(interaction.interactionId, sizeOf([interaction.request, interaction.response]))
  }

  #attach(attachment: Attachment): void {
    this.attachments.set(attachment.attachmentId, attachment)
    this.#ops.push({ op: 'attachment.upsert', attachment })
  }

  #prompt(prompt: Prompt): void {
    this.prompts.set(prompt.promptId, prompt)
    this.#ops.push({ op: 'prompt.upsert', prompt })
    if (prompt.finishedAt !== undefined) this.#budget.put(prompt.promptId, sizeOf(prompt.content))
  }

  #changePrompt(id: string, change: Partial<Prompt>): void {
    const known = this.prompts.get(id)
    if (known && Object.entries(change).some(([key, value]) => known[key as keyof Prompt] !== value)) this.#prompt({ ...known, ...change })
  }

  #merge(change: MetaChange): void {
    this.meta = merged(this.meta, change)
    this.#ops.push({ op: 'meta.merge', meta: change })
  }

  /** Lets go of the large fields of an older entity: there is no room for them. */
  #slim(id: string): void {
    const interaction = this.interactions.get(id)
    if (interaction?.request !== undefined) {
      const { request: _request, ...head } = interaction
      this.interactions.set(id, head)
      this.#ops.push({ op: 'interaction.upsert', interaction: head })
    }
    const prompt = this.prompts.get(id)
    if (prompt?.content) {
      const { content: _content, ...head } = prompt
      this.prompts.set(id, head)
      this.#ops.push({ op: 'prompt.upsert', prompt: head })
    }
    const task = this.tasks.get(id)
    if (task) {
      const { resultSummary: _summary, ...head } = { ...task, outputTail: '' }
      this.tasks.set(id, head)
      this.#ops.push({ op: 'task.upsert', task: head })
    }
  }
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
const sizeOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0

/** A call that asked, in a step of its own: what a client is told of a turn right before it removes it. */
const asking = (id: string, toolCallId: string): Op => ({
  op: 'frame.upsert',
  turnId: id,
  stepId: `${id}.0`,
  frame: { kind: 'tool', frameId: `${id}.0.${toolCallId}`, toolCallId, name: '', state: 'done' }
})
