/**
 * What the records of an agent say so far, without the texts: prompts, the last turn, usage, context size, and where its messages are. Small
 * however long the history is, and saved in checkpoints (`conversation-saved.ts`). A pure fold.
 */
import { addUsage, type LlmToolCall, noUsage, sumUsage, type TokenUsage } from '../llm/index.ts'
import type { HistoryRecord } from './define.ts'
import { isBlocked, type MessageFacts, messageFacts, numberOf } from './message.ts'
import { type CoreRecord, coreRecord } from './records.ts'
import { estimateMessage } from './tokens.ts'
import type { LastUndo, OpenStep, Origin, PromptRecord, TurnRecord } from './types.ts'

/** The position of every so many messages is known; those between are found by reading from there. */
export const indexStep = 64

export interface KnownPrompt extends PromptRecord {
  /** Position of its `prompt.accepted`. */
  at?: number
}

/** Where a turn of the user begins, and what the context took before it. */
interface Opening {
  /** Number of its message. */
  readonly number: number
  readonly tokens: Conversation['tokens']
  /** The newest prompt of the user before it. */
  readonly prompt?: string | undefined
}

/** A reminder in the context. `number`: of its message. */
export interface Reminder {
  readonly number: number
  readonly origin: Origin
}

/** So many turns of the user can be taken back, and so many reminders of a kind are remembered. */
const openingsKept = 2000
const remindersKept = 16

/** Whether a message of this origin is what the user wrote, or a skill or command that the user called. */
export function isUserInput(origin: Origin | undefined): boolean {
  const kind = origin?.kind ?? 'user'
  return kind === 'user' || ((kind === 'skill_activation' || kind === 'plugin_command') && origin?.trigger === 'user-slash')
}

/** The prompt of the user that came last and waits: an undo leaves it. */
export function newestWaiting(prompts: ReadonlyMap<string, PromptRecord>): PromptRecord | undefined {
  return [...prompts.values()].findLast(({ status, origin }) => status === 'queued' && isUserInput(origin))
}

/** In which entry of the index the position of a message is, or one before it. */
const blockOf = (number: number): number => Math.floor(number / indexStep)

export class Conversation {
  readonly prompts = new Map<string, KnownPrompt>()
  turn: TurnRecord | undefined
  turns = 0
  usage: TokenUsage = noUsage
  usageByModel: Record<string, TokenUsage> = {}
  openStep: OpenStep | undefined
  /** Calls of the last answer that wait for a result. */
  openCalls = new Map<string, LlmToolCall>()
  /** Calls that were begun and told, of those. */
  begun = new Set<string>()
  /** Hashes of all call ids ever: one that is here by chance only costs a suffix. */
  readonly callIds = new Set<number>()
  /** Number of the next message. */
  messages = 0
  /** The same for those whose record is on disk. */
  located = 0
  /** Positions of the messages 0, 64, 128, ...; of the next one where there is none of that number. */
  readonly index: number[] = []
  /** Numbers of messages with an id of their own. */
  readonly named = new Map<string, number>()
  /** Numbers that were taken back, or given to messages that did not get on disk: from, up to (not included); rising, apart. */
  readonly hidden: [number, number][] = []
  /** Where the records of the context begin, and the number of its first message. */
  context = { at: 0, message: 0 }
  /**
   * Tokens: measured up to the last answer, estimated behind it, estimated behind the newest answer that may be measured next, and estimated of
   * the whole context.
   */
  tokens = { measured: 0, since: 0, sinceAnswer: 0, estimated: 0 }
  /** Turns of the user since the last compaction, oldest first. */
  openings: Opening[] = []
  /** Id of the newest prompt of the user that became a message. */
  prompt: string | undefined
  /** There were more of them than are kept. */
  openingsLost = false
  compactions = 0
  /** The newest undo. */
  undone: LastUndo | undefined
  /** The newest reminders in the context, by variant, oldest first. */
  readonly reminders = new Map<string, readonly Reminder[]>()
  /** Time of the newest message, ms. */
  lastTime = 0

  apply(given: HistoryRecord): void {
    const record = coreRecord(given)
    if (!record) return
    const facts = messageFacts(record)
    const { tokens } = this
    if (facts) this.#add(record, facts)
    const at = new Date(record.time ?? 0).toISOString()
    switch (record.type) {
      case 'prompt.accepted': {
        const { prompt_id, content, origin } = record
        this.prompts.set(prompt_id, { prompt_id, content, created_at: at, status: 'queued', ...(origin ? { origin } : {}) })
        break
      }
      case 'prompt.settled':
        for (const id of record.prompt_ids) this.#prompt(id, { status: record.status, content: [] })
        break
      case 'prompt.steered':
        for (const id of record.prompt_ids) this.#prompt(id, { status: 'steered', turn_id: record.turn_id })
        break
      case 'message':
        if (record.prompt_id !== undefined) this.#prompt(record.prompt_id, { status: 'running' })
        if (record.id !== undefined) this.named.set(record.id, this.messages - 1)
        if (record.origin?.kind === 'injection') this.#remind(String(record.origin.variant), record.origin)
        if (this.#opens(record)) this.openings.push({ number: this.messages - 1, tokens, prompt: this.prompt })
        if (record.prompt_id !== undefined && isUserInput(record.origin)) this.prompt = record.prompt_id
        if (this.openings.length > openingsKept) this.openingsLost = this.openings.shift() !== undefined
        break
      case 'turn.started':
        this.turns++
        this.turn = {
          turn_id: record.turn_id,
          origin: record.origin,
          ...(record.prompt_id === undefined ? {} : { prompt_id: record.prompt_id }),
          started_at: at,
          steps: 0
        }
        if (record.prompt_id !== undefined) this.#prompt(record.prompt_id, { status: 'running', turn_id: record.turn_id })
        break
      case 'step.begin':
        this.openStep = { turn_id: record.turn_id, step: record.step, step_id: record.step_id }
        this.#turn(record.turn_id, { steps: record.step })
        break
      case 'step.message':
        if (this.openStep) {
          const told = record.told ? { told: record.told } : {}
          this.openStep = { ...this.openStep, answered: true, ...(record.usage ? { spent: true } : {}), ...told }
        }
        if (record.usage) this.#spend(record.model ?? '', record.usage)
        this.openCalls = new Map(record.tool_calls.map(call => [call.id, call]))
        this.begun.clear()
        for (const call of record.tool_calls) this.callIds.add(hashOf(call.id))
        break
      case 'tool.begin':
        this.begun.add(record.tool_call_id)
        this.#pastText()
        break
      case 'tool.result':
        this.openCalls.delete(record.tool_call_id)
        this.#pastText()
        break
      case 'step.end':
        if (record.usage && !this.openStep?.spent) this.#spend(record.model ?? '', record.usage)
        this.openStep = this.openStep && record.retry && !record.interrupted ? { ...this.openStep, waits: true } : undefined
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
        // What was handed to the turn and did not become a message waits again.
        for (const prompt of this.prompts.values()) if (prompt.status === 'steered') this.#prompt(prompt.prompt_id, { status: 'queued' })
        break
      case 'context.compacted':
        this.#compacted(record)
        break
      case 'context.undone':
        this.#undo(record)
        break
      case 'session.forked':
        // They wait where they came; the map may lose entries while it is walked through.
        for (const { prompt_id, status } of this.prompts.values())
          if (status === 'queued' || status === 'steered') this.prompts.delete(prompt_id)
        break
      case 'tokens.spent':
        this.#count(record.model, record.usage)
        break
      default:
        break
    }
  }

  /** The record that `apply` took in before is at this position; in the order of the records. */
  place(given: HistoryRecord, at: number): void {
    const record = coreRecord(given)
    if (!record) return
    if (record.type === 'prompt.accepted') {
      const prompt = this.prompts.get(record.prompt_id)
      if (prompt) prompt.at = at
    }
    if (record.type === 'context.compacted') this.context = this.#contextAt(record, at)
    if (!messageFacts(record)) return
    const number = numberOf(record, this.located)
    while (this.index.length * indexStep <= number) this.index.push(at)
    this.located = number + 1
  }

  /** Where to read the context from: what stays of the messages before is read again. */
  #contextAt({ rest }: Extract<CoreRecord, { type: 'context.compacted' }>, at: number): Conversation['context'] {
    return { ...this.context, at: (rest && this.index[blockOf(rest.from)]) ?? at }
  }

  #pastText(): void {
    if (!this.openStep?.told) return
    const { told: _told, ...step } = this.openStep
    this.openStep = step
  }

  contextTokens(): number {
    return this.tokens.measured + this.tokens.since
  }

  knowsCall(id: string): boolean {
    return this.callIds.has(hashOf(id))
  }

  isHidden(number: number): boolean {
    return this.hidden.some(([from, to]) => number >= from && number < to)
  }

  /** A turn begins with it that the user began. What is steered into a turn belongs to it. */
  #opens({ origin, turn_id, prompt_id }: Extract<CoreRecord, { type: 'message' }>): boolean {
    const { turn } = this
    if (turn_id === undefined) {
      // A prompt that a hook blocked: while a turn runs it came to be steered into that one, and goes with it.
      const steered = prompt_id !== undefined && turn !== undefined && turn.reason === undefined
      return !steered && isUserInput(origin)
    }
    const begins = turn?.turn_id !== turn_id || (prompt_id !== undefined && turn.prompt_id === prompt_id)
    return begins && isUserInput(origin)
  }

  #remind(variant: string, origin: Origin): void {
    const earlier = this.reminders.get(variant) ?? []
    this.reminders.set(variant, [...earlier, { number: this.messages - 1, origin }].slice(-remindersKept))
  }

  #compacted({ messages, rest }: Extract<CoreRecord, { type: 'context.compacted' }>): void {
    const { from = this.messages, tokens = 0 } = rest ?? {}
    const estimated = messages.reduce((sum, each) => sum + estimateMessage(each), tokens)
    this.context = { at: -1, message: rest ? Math.min(blockOf(from) * indexStep, this.messages - 1) : this.messages - 1 }
    this.tokens = { measured: 0, since: estimated, sinceAnswer: estimated, estimated }
    this.compactions++
    this.openings = []
    this.openingsLost = false
    this.#forgetReminders(number => number >= from)
  }

  #forgetReminders(stays: (number: number) => boolean): void {
    for (const [variant, all] of this.reminders) {
      const left = all.filter(({ number }) => stays(number))
      if (left.length > 0) this.reminders.set(variant, left)
      else this.reminders.delete(variant)
    }
  }

  #undo({ from, context_tokens: measured, last_prompt, time = 0 }: Extract<CoreRecord, { type: 'context.undone' }>): void {
    const opening = this.openings.find(({ number }) => number === from)
    if (opening) this.prompt = opening.prompt
    this.tokens = opening?.tokens ?? { measured, since: 0, sinceAnswer: 0, estimated: measured }
    this.openings = this.openings.filter(({ number }) => number < from)
    this.#forgetReminders(number => number < from)
    const waiting = newestWaiting(this.prompts)?.prompt_id
    this.undone = { time, ...(last_prompt === undefined ? {} : { last_prompt }), ...(waiting === undefined ? {} : { waiting }) }
    this.#hide(from, this.messages)
  }

  #add(record: CoreRecord, facts: MessageFacts): void {
    if (!isBlocked(facts)) this.#grow(record, facts)
    const number = numberOf(record, this.messages)
    if (number > this.messages) this.#hide(this.messages, number)
    this.messages = number + 1
    this.lastTime = Math.max(this.lastTime, record.time ?? 0)
  }

  #grow(record: CoreRecord, facts: MessageFacts): void {
    const content = facts.content ?? this.prompts.get(facts.prompt_id ?? '')?.content ?? []
    const tokens = record.type === 'context.compacted' ? 0 : estimateMessage({ ...facts, content })
    const { measured, since, sinceAnswer, estimated } = this.tokens
    const behind = facts.role === 'assistant' ? 0 : sinceAnswer + tokens
    this.tokens = { measured, since: since + tokens, sinceAnswer: behind, estimated: estimated + tokens }
  }

  #count(model: string, usage: TokenUsage): void {
    this.usage = sumUsage(this.usage, usage)
    this.usageByModel = addUsage(this.usageByModel, model, usage)
  }

  #spend(model: string, usage: TokenUsage): void {
    this.#count(model, usage)
    const measured = usage.inputOther + usage.inputCacheRead + usage.inputCacheCreation + usage.output
    const { sinceAnswer, estimated } = this.tokens
    if (measured > 0) this.tokens = { measured, since: sinceAnswer, sinceAnswer, estimated }
  }

  /** `to` is never below what was hidden before. */
  #hide(from: number, to: number): void {
    let first = from
    for (let last = this.hidden.at(-1); last && last[1] >= first; last = this.hidden.at(-1)) {
      first = Math.min(first, last[0])
      this.hidden.pop()
    }
    if (first < to) this.hidden.push([first, to])
  }

  #turn(turn_id: number, change: Partial<TurnRecord>): void {
    if (this.turn?.turn_id === turn_id) this.turn = { ...this.turn, ...change }
  }

  #prompt(id: string, change: Partial<KnownPrompt>): void {
    const prompt = this.prompts.get(id)
    if (prompt) this.prompts.set(id, { ...prompt, ...change })
  }
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
