/** Records to state: a pure, incremental fold. Replaying a journal gives the state that was live. */
import type { LlmToolCall, TokenUsage } from '../llm/index.ts'
import type { CoreRecord, HistoryMessage, HistoryRecord, OpenStep, PromptRecord, TurnRecord } from './service.ts'

const noUsage: TokenUsage = { inputOther: 0, output: 0, inputCacheRead: 0, inputCacheCreation: 0 }

/** Everything the records say so far. `session_id` goes into the ids of messages without their own. */
export class Fold {
  readonly messages: HistoryMessage[] = []
  readonly turns: TurnRecord[] = []
  readonly prompts = new Map<string, PromptRecord>()
  readonly usageByModel: Record<string, TokenUsage> = {}
  readonly callIds = new Set<string>()
  readonly others = new Map<string, HistoryRecord[]>()
  usage: TokenUsage = noUsage
  /** Tokens that the model measured for the first `length` messages. */
  anchor = { length: 0, tokens: 0 }
  openStep: OpenStep | undefined
  /** Calls of the last assistant message that wait for a result, by id. */
  readonly openCalls = new Map<string, LlmToolCall>()
  #lastAssistant = 0
  readonly #sessionId: string

  constructor(sessionId: string) {
    this.#sessionId = sessionId
  }

  apply(given: HistoryRecord): void {
    const record = given as CoreRecord // narrowed by type below; other types fall through
    const at = new Date(given.time ?? 0).toISOString()
    switch (record.type) {
      case 'prompt.accepted':
        this.prompts.set(record.prompt_id, {
          prompt_id: record.prompt_id,
          content: record.content,
          created_at: at,
          status: 'queued',
          ...origin(record)
        })
        break
      case 'prompt.settled':
        for (const id of record.prompt_ids) this.#prompt(id, { status: record.status, content: [] })
        break
      case 'prompt.steered':
        for (const id of record.prompt_ids) this.#prompt(id, { status: 'running', turn_id: record.turn_id })
        break
      case 'message': {
        const { type: _type, id, content, ...facts } = record
        this.#add({
          ...facts,
          id: id ?? this.nextId(),
          created_at: at,
          content: content ?? this.prompts.get(facts.prompt_id ?? '')?.content ?? []
        })
        break
      }
      case 'turn.started':
        this.turns.push({
          turn_id: record.turn_id,
          origin: record.origin,
          ...(record.prompt_id === undefined ? {} : { prompt_id: record.prompt_id }),
          started_at: at,
          steps: 0
        })
        if (record.prompt_id !== undefined) this.#prompt(record.prompt_id, { status: 'running', turn_id: record.turn_id })
        break
      case 'step.begin':
        this.openStep = { turn_id: record.turn_id, step: record.step, step_id: record.step_id }
        this.#turn(record.turn_id, { steps: record.step })
        break
      case 'step.message': {
        const { type: _type, ...facts } = record
        this.openCalls.clear()
        for (const call of record.tool_calls) {
          this.callIds.add(call.id)
          this.openCalls.set(call.id, call)
        }
        this.#add({ ...facts, role: 'assistant', id: this.nextId(), created_at: at })
        this.#lastAssistant = this.messages.length
        break
      }
      case 'tool.result': {
        const { type: _type, synthetic: _synthetic, ...facts } = record
        this.openCalls.delete(record.tool_call_id)
        this.#add({ ...facts, role: 'tool', id: this.nextId(), created_at: at })
        break
      }
      case 'step.end':
        this.openStep = undefined
        if (record.usage) this.#spend(record.model ?? '', record.usage)
        break
      case 'turn.ended':
        this.openStep = undefined
        this.openCalls.clear()
        this.#turn(record.turn_id, {
          ended_at: at,
          reason: record.reason,
          ...(record.interrupt_reason === undefined ? {} : { interrupt_reason: record.interrupt_reason }),
          ...(record.error ? { error: record.error } : {})
        })
        break
      default:
        this.#keep(given)
    }
  }

  /** Id of the next message without its own: `msg_<session>_<6-digit index>`. */
  nextId(): string {
    return `msg_${this.#sessionId}_${String(this.messages.length).padStart(6, '0')}`
  }

  #add(message: HistoryMessage): void {
    this.messages.push(message)
  }

  #spend(model: string, usage: TokenUsage): void {
    this.usage = add(this.usage, usage)
    this.usageByModel[model] = add(this.usageByModel[model] ?? noUsage, usage)
    const input = usage.inputOther + usage.inputCacheRead + usage.inputCacheCreation
    if (input + usage.output > 0) this.anchor = { length: this.#lastAssistant, tokens: input + usage.output }
  }

  #turn(turn_id: number, change: Partial<TurnRecord>): void {
    const at = this.turns.findLastIndex(turn => turn.turn_id === turn_id)
    const turn = this.turns[at]
    if (turn) this.turns[at] = { ...turn, ...change }
  }

  #prompt(id: string, change: Partial<PromptRecord>): void {
    const prompt = this.prompts.get(id)
    if (prompt) this.prompts.set(id, { ...prompt, ...change })
  }

  #keep(record: HistoryRecord): void {
    if (record.type === 'metadata') return
    const list = this.others.get(record.type)
    if (list) list.push(record)
    else this.others.set(record.type, [record])
  }
}

function origin(record: { readonly origin?: PromptRecord['origin'] }): Pick<PromptRecord, 'origin'> {
  return record.origin === undefined ? {} : { origin: record.origin }
}

function add(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    inputOther: a.inputOther + b.inputOther,
    output: a.output + b.output,
    inputCacheRead: a.inputCacheRead + b.inputCacheRead,
    inputCacheCreation: a.inputCacheCreation + b.inputCacheCreation
  }
}
