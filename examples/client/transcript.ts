/** The transcript of one agent, folded from a baseline and operations. The types come from the documents that the server serves. */
import type {
  TranscriptFrame,
  TranscriptMeta,
  TranscriptOp,
  TranscriptPage,
  TranscriptSnapshot,
  TranscriptStep,
  TranscriptTurn
} from '../../client/index.ts'

type Item = TranscriptSnapshot['items'][number]
/** What baselines and pages have in common. */
export type Baseline = Pick<TranscriptPage, 'items' | 'tasks' | 'interactions' | 'attachments' | 'todos' | 'prompts' | 'meta'>

export class Transcript {
  items: Item[]
  meta: TranscriptMeta
  readonly tasks: Map<string, Baseline['tasks'][number]>
  readonly interactions: Map<string, Baseline['interactions'][number]>
  readonly attachments: Map<string, Baseline['attachments'][number]>
  readonly todos: Map<string, Baseline['todos'][number]>
  readonly prompts: Map<string, Baseline['prompts'][number]>

  constructor(base: Baseline) {
    this.items = structuredClone(base.items)
    this.meta = base.meta
    this.tasks = new Map(base.tasks.map(each => [each.taskId, each]))
    this.interactions = new Map(base.interactions.map(each => [each.interactionId, each]))
    this.attachments = new Map(base.attachments.map(each => [each.attachmentId, each]))
    this.todos = new Map(base.todos.map(each => [each.todoId, each]))
    this.prompts = new Map(base.prompts.map(each => [each.promptId, each]))
  }

  /** False when text is missing before the operation: the transcript has to be read again. */
  apply(op: TranscriptOp): boolean {
    switch (op.op) {
      case 'turn.upsert':
        this.#putTurn({ ...op.turn, steps: this.#turn(op.turn.turnId)?.steps ?? [] })
        return true
      case 'step.upsert':
        return this.#inTurn(op.turnId, ({ steps }) => {
          const known = steps.find(step => step.stepId === op.step.stepId)
          put(steps, { ...op.step, frames: known?.frames ?? [] }, one => one.stepId)
          steps.sort((a, b) => a.ordinal - b.ordinal)
        })
      case 'frame.upsert':
        return this.#inStep(op.turnId, op.stepId, ({ frames }) => put(frames, op.frame, one => one.frameId))
      case 'append':
        return op.target.type === 'frame' ? this.#append(op.target, op.offset, op.text) : true
      case 'marker.upsert':
      case 'taskref.upsert':
        put(this.items, op.item, idOf)
        return true
      case 'task.upsert':
        this.tasks.set(op.task.taskId, op.task)
        return true
      case 'interaction.upsert':
        this.interactions.set(op.interaction.interactionId, op.interaction)
        return true
      case 'attachment.upsert':
        this.attachments.set(op.attachment.attachmentId, op.attachment)
        return true
      case 'todo.upsert':
        this.todos.set(op.todo.todoId, op.todo)
        return true
      case 'prompt.upsert':
        this.prompts.set(op.prompt.promptId, op.prompt)
        return true
      case 'meta.merge':
        this.#merge(op.meta)
        return true
      case 'items.remove':
        for (const id of op.ids) this.interactions.delete(id)
        this.#remove(new Set(op.ids))
        return true
    }
  }

  view(): Baseline {
    const { items, meta, tasks, interactions, attachments, todos, prompts } = this
    const list = <T>(all: Map<string, T>) => [...all.values()]
    return {
      items,
      meta,
      tasks: list(tasks),
      interactions: list(interactions),
      attachments: list(attachments),
      todos: list(todos),
      prompts: list(prompts)
    }
  }

  #turn(id: string): TranscriptTurn | undefined {
    return this.items.find(item => item.kind === 'turn' && item.turnId === id) as TranscriptTurn | undefined
  }

  /** Turns stand in the order of their numbers. */
  #putTurn(turn: TranscriptTurn): void {
    const at = this.items.findIndex(item => idOf(item) === turn.turnId)
    const behind = this.items.findIndex(item => item.kind === 'turn' && item.ordinal > turn.ordinal)
    if (at >= 0) this.items[at] = turn
    else this.items.splice(behind < 0 ? this.items.length : behind, 0, turn)
  }

  /** False when the turn is not there: its head comes before its parts. */
  #inTurn(id: string, change: (turn: TranscriptTurn) => void): boolean {
    const turn = this.#turn(id)
    if (turn) change(turn)
    return turn !== undefined
  }

  #inStep(turnId: string, stepId: string, change: (step: TranscriptStep) => void): boolean {
    const step = this.#turn(turnId)?.steps.find(one => one.stepId === stepId)
    if (step) change(step)
    return step !== undefined
  }

  #append({ turnId, stepId, frameId }: { turnId: string; stepId: string; frameId: string }, offset: number, text: string): boolean {
    let fits = false
    this.#inStep(turnId, stepId, ({ frames }) => {
      const frame = frames.find(one => one.frameId === frameId)
      if (frame?.kind !== 'text' && frame?.kind !== 'thinking') return
      const known = frame.text.slice(offset, offset + text.length)
      fits = offset <= frame.text.length && text.startsWith(known)
      if (fits) put(frames, { ...frame, text: frame.text + text.slice(known.length) } as TranscriptFrame, one => one.frameId)
    })
    return fits
  }

  #merge({ goal, modes, activity, agent }: Extract<TranscriptOp, { op: 'meta.merge' }>['meta']): void {
    const { goal: oldGoal, modes: oldModes, activity: oldActivity, agent: oldAgent } = this.meta
    const nextActivity = activity ?? oldActivity
    const nextGoal = goal === null ? undefined : (goal ?? oldGoal)
    const set = Object.entries({ ...oldModes, ...modes }).filter(([, mode]) => mode !== null && mode !== undefined)
    const nextAgent = agent ? { ...oldAgent, ...agent } : oldAgent
    this.meta = {
      ...(nextGoal && { goal: nextGoal }),
      ...(set.length > 0 && { modes: Object.fromEntries(set) }),
      ...(nextActivity && { activity: nextActivity }),
      ...(nextAgent && { agent: nextAgent })
    }
  }

  /** What a turn asked goes with it. */
  #remove(ids: ReadonlySet<string>): void {
    const gone = this.items.filter(item => ids.has(idOf(item)))
    const frames = gone.flatMap(item => (item.kind === 'turn' ? item.steps.flatMap(step => step.frames) : []))
    const calls = new Set(frames.flatMap(frame => (frame.kind === 'tool' ? [frame.toolCallId] : [])))
    for (const [id, { toolCallId }] of this.interactions)
      if (toolCallId !== undefined && calls.has(toolCallId)) this.interactions.delete(id)
    this.items = this.items.filter(item => !ids.has(idOf(item)))
  }
}

function put<T>(all: T[], one: T, id: (one: T) => string): void {
  const at = all.findIndex(other => id(other) === id(one))
  if (at < 0) all.push(one)
  else all[at] = one
}

function idOf(item: Item): string {
  if (item.kind === 'turn') return item.turnId
  return item.kind === 'marker' ? item.markerId : item.refId
}
