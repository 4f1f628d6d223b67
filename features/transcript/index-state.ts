/**
 * Where the turns of an agent are in its journal, and what stands beside them. Small however long the history is, and saved in checkpoints: a
 * page reads its own turns and nothing else. Takes a record in once it is on disk.
 */
import { coreRecord, type HistoryRecord, isMessage, numberOf, recordTypes, type StateSpec } from '../history/index.ts'
import { Entities, type SavedEntities } from './entities.ts'
import type { Meta, Op, Todo, Turn } from './shapes.ts'

interface Before {
  readonly todo: Todo | undefined
  readonly plan: NonNullable<Meta['modes']>['plan'] | undefined
}

/** A turn that was not taken back. */
export interface TurnEntry {
  readonly ordinal: number
  /** Position of its `turn.started`. */
  readonly at: number
  /** Of the message that opened it. */
  readonly number: number
  /** Where the records that open it end: with its message, or before it when a prompt has the content. */
  until?: number
  /** Position of its `prompt.accepted`, and where that ends. */
  readonly prompt_at?: number
  readonly prompt_end?: number
  readonly prompt_id?: string
  readonly started: number
  state: Turn['state']
  /** It put up a plan. */
  planned?: boolean
  /** What undo takes back to; absent where nothing can be taken back any more. */
  before?: Before
}

/** Where the record of a prompt is. */
export type PromptPlace = Pick<TurnEntry, 'prompt_id' | 'prompt_at' | 'prompt_end'>

/** The same, by the id of the prompt. */
interface Accepted {
  readonly at: number
  end?: number
}

interface Saved {
  readonly entries: readonly (Omit<TurnEntry, 'before'> & { readonly before?: number })[]
  /** Many entries have the same. */
  readonly befores: readonly Before[]
  readonly next: number
  readonly accepted: readonly (readonly [string, Accepted])[]
  readonly entities: SavedEntities
}

type Listener = (record: HistoryRecord, at: number, ops: readonly Op[]) => void

export class TranscriptIndex {
  readonly entries: TurnEntry[] = []
  entities = new Entities()
  /** Number of the next message. */
  next = 0
  /** Positions of prompts that are not over. */
  readonly accepted = new Map<string, Accepted>()
  /** Called with every record after it was taken in. */
  readonly listeners = new Set<Listener>()
  #before: Before = { todo: undefined, plan: undefined }
  /** Who waits to hear where a record ends, which is where the next one begins; `left`: how many records come before that. */
  #ends: { left: number; readonly tell: (at: number) => void }[] = []

  take(record: HistoryRecord, at: number): void {
    const core = coreRecord(record)
    const last = this.entries.at(-1)
    const ops: Op[] = []
    for (const end of this.#ends) if (--end.left === 0) end.tell(at)
    this.#ends = this.#ends.filter(({ left }) => left > 0)
    switch (core?.type) {
      case 'prompt.accepted': {
        const accepted: Accepted = { at }
        this.accepted.set(core.prompt_id, accepted)
        this.#ends.push({
          left: 1,
          tell: end => {
            accepted.end = end
          }
        })
        break
      }
      case 'prompt.settled':
        for (const id of core.prompt_ids) this.accepted.delete(id)
        break
      case 'turn.started': {
        const { turn_id: ordinal, prompt_id, time: started = 0 } = core
        const { at: prompt_at, end: prompt_end } = this.accepted.get(prompt_id ?? '') ?? {}
        const ends = prompt_end === undefined ? {} : { prompt_end }
        const prompt = prompt_id === undefined || prompt_at === undefined ? {} : { prompt_id, prompt_at, ...ends }
        const entry: TurnEntry = { ordinal, at, number: this.next, ...prompt, started, state: 'running', before: this.#remembered() }
        this.entries.push(entry)
        this.#ends.push({
          // What no prompt has stands in the message that follows.
          left: 'prompt_at' in prompt ? 1 : 2,
          tell: end => {
            entry.until = end
          }
        })
        break
      }
      case 'turn.ended':
        if (last?.ordinal === core.turn_id) last.state = core.reason === 'blocked' ? 'failed' : core.reason
        break
      case 'tool.begin':
        if (last && core.tool_name === 'ExitPlanMode') last.planned = true
        break
      case 'context.compacted':
        for (const entry of this.entries) delete entry.before
        break
      case 'context.undone': {
        const first = this.entries.findIndex(({ number }) => number >= core.from)
        if (first < 0) break
        const gone = this.entries.splice(first)
        const turns = gone.map(({ ordinal }) => ordinal)
        ops.push(...this.entities.undo(turns, gone[0]?.before ?? this.#remembered(), core.time))
        break
      }
      default:
        break
    }
    ops.push(...this.entities.take(record, this.entries.at(-1)?.ordinal))
    if (core && isMessage(core)) this.next = numberOf(core, this.next) + 1
    for (const listener of this.listeners) listener(record, at, ops)
  }

  /** A turn, a request or a task has not ended. */
  get isOpen(): boolean {
    return this.entries.at(-1)?.state === 'running' || this.entities.isOpen
  }

  /** Where the prompts are that are not over. */
  waiting(): PromptPlace[] {
    return [...this.accepted].map(([prompt_id, { at, end }]) => ({
      prompt_id,
      prompt_at: at,
      ...(end === undefined ? {} : { prompt_end: end })
    }))
  }

  /** The present values, shared with those who remembered the same. */
  #remembered(): Before {
    const { todo, meta } = this.entities
    const plan = meta.modes?.plan
    if (this.#before.todo !== todo || this.#before.plan !== plan) this.#before = { todo, plan }
    return this.#before
  }

  save(): Saved {
    const befores: Before[] = []
    const entries = this.entries.map(({ before, ...entry }) => {
      if (!before) return entry
      if (befores.at(-1) !== before) befores.push(before)
      return { ...entry, before: befores.length - 1 }
    })
    return { entries, befores, next: this.next, accepted: [...this.accepted], entities: this.entities.save() }
  }

  static load(saved: Saved): TranscriptIndex {
    const made = new TranscriptIndex()
    for (const { before, ...entry } of saved.entries) {
      const known = before === undefined ? undefined : saved.befores[before]
      made.entries.push({ ...entry, ...(known ? { before: known } : {}) })
    }
    for (const [id, at] of saved.accepted) made.accepted.set(id, at)
    made.next = saved.next
    made.entities = Entities.load(saved.entities)
    return made
  }
}

export const indexState: StateSpec<TranscriptIndex> = {
  name: 'transcript',
  version: 4,
  initial: () => new TranscriptIndex(),
  // Positions are known only once a record is on disk; and nobody sees what the disk may still refuse.
  records: recordTypes(),
  reduce: state => state,
  located: (state, record, at) => state.take(record, at),
  save: state => state.save(),
  load: saved => TranscriptIndex.load(saved as Saved)
}
