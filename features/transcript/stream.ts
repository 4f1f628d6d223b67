/**
 * The transcript of an agent while its session is loaded: every record that gets on disk, and what streams, becomes a batch of operations. Opened
 * with the agent, or when somebody first looks at one that is older.
 */
import type { Agents } from '../agent/index.ts'
import { coreRecord, type Histories, type History, type HistoryRecord } from '../history/index.ts'
import type { Llm } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { indexState, type TranscriptIndex } from './index-state.ts'
import { type Batch, type CatchUp, OpJournal } from './op-journal.ts'
import type { Item, Op, Snapshot } from './shapes.ts'
import { opWithLimits, shownIn } from './shown.ts'
import { foldRange, type Source, sourceOf } from './source.ts'
import { TurnFold } from './turn-fold.ts'

export interface StreamPorts {
  readonly histories: Histories
  readonly agents: Agents | undefined
  /** Takes a batch, in order. */
  readonly dispatch: (batch: Batch) => void
  /** Batches cannot say what happened: everybody needs the transcript anew. */
  readonly renew: () => void
  /** Knows what the journal does not: the limits of models. */
  readonly llm: () => Llm | undefined
  readonly failed: (error: unknown) => void
}

/** Numbers of batches go on behind those of an earlier process: each record on disk stands for so many of them. */
const batchesPerByte = 2 ** 20
/** Of a turn that takes more, only the step that runs is in memory. */
const heldBytes = 4 * 1024 * 1024
/** The running turn is part of a baseline when it takes no more. */
const baselineBytes = 256 * 1024
/** So many passes of the event loop events wait, for others that share their write. */
const eventPasses = 2
/** Newest numbers of streams that were closed while their agent lives on. */
const lastSeqs = new WeakMap<AgentHost, number>()

interface Opened {
  readonly history: History
  readonly index: TranscriptIndex
  readonly tracked: { readonly value: TranscriptIndex }
  readonly journal: OpJournal
}

export class AgentStream {
  /** Resolves when everything on disk was taken in. */
  readonly ready: Promise<this>
  readonly #host: AgentHost
  readonly #ports: StreamPorts
  #opened: Opened | undefined
  #fold = new TurnFold()
  /** Something stands before what the fold has, or may. */
  #older = false
  /** Bytes of the operations of the turn. */
  #turnBytes = 0
  /** What came and is not in it yet. */
  #waiting: (() => void)[] = []
  #ready = false
  #soon: NodeJS.Immediate | undefined
  #closed = false

  constructor(host: AgentHost, ports: StreamPorts) {
    this.#host = host
    this.#ports = ports
    this.ready = this.#open()
    this.ready.catch(ports.failed)
  }

  async #open(): Promise<this> {
    const { histories, agents } = this.#ports
    const history = await histories.of(this.#host)
    const tracked = await history.track(indexState)
    const engine = agents?.isOpen(this.#host) ? await agents.of(this.#host) : undefined
    // One tick: what is on disk, what streams, and what comes from now on.
    const index = tracked.value
    const end = history.end()
    const streams = engine?.inFlight()
    const journal = new OpJournal(Math.max(end * batchesPerByte, lastSeqs.get(this.#host) ?? 0))
    this.#opened = { history, index, tracked, journal }
    if (!this.#closed) index.listeners.add(this.#record)
    const entries = index.entries.map(entry => ({ ...entry }))
    const waiting = index.waiting()
    const source = { end, entries, records: (range: Parameters<History['records']>[0]) => history.records(range) }
    const from = entries.at(-1)?.at ?? 0
    this.#fold = await foldRange(source, from, end, waiting)
    this.#older = from > 0
    if (streams) {
      this.#fold.streamed('thinking', streams.turn_id, streams.thinking_text)
      this.#fold.streamed('text', streams.turn_id, streams.assistant_text)
      for (const { tool_call_id, last_progress } of streams.running_tools) {
        if (last_progress) this.#fold.progressed(streams.turn_id, tool_call_id, last_progress)
      }
    }
    this.#ready = true
    this.#catchUp()
    return this
  }

  get seq(): number {
    this.#catchUp()
    return this.#opened?.journal.latest ?? 0
  }

  /** The disk refused something and was read again: this stream does not hear of it any more. */
  get stale(): boolean {
    return this.#opened !== undefined && this.#opened.tracked.value !== this.#opened.index
  }

  since(seq: number): CatchUp {
    this.#catchUp()
    return this.#opened?.journal.since(seq) ?? { batches: [], latest_seq: 0, complete: false }
  }

  /** For pages; only when it is ready. */
  source(): Source {
    this.#catchUp()
    const { history, index } = this.#known()
    const step = this.#fold.lastStep()
    const live = step && { turnId: step.turnId, stepId: step.stepId, frames: [...step.frames] }
    return sourceOf(index, { end: history.end(), records: range => history.records(range), live, seq: this.seq })
  }

  /** Everything but the past; only when it is ready. */
  baseline(withSteps: boolean): Snapshot {
    this.#catchUp()
    const { index } = this.#known()
    const { entries, entities } = index
    const turn = this.#fold.timeline.lastTurn()
    const runs = turn?.state === 'running' && turn.ordinal === entries.at(-1)?.ordinal && this.#turnBytes <= baselineBytes
    const isShown = runs || (entries.length === 0 && !this.#older)
    const copy = (item: Item): Item =>
      item.kind === 'turn' ? { ...item, steps: withSteps ? item.steps.map(step => ({ ...step, frames: [...step.frames] })) : [] } : item
    return {
      items: isShown ? this.#fold.timeline.items.map(copy) : [],
      ...shownIn(this.#host.session.id, entities.shown(), this.#ports.llm()),
      hasMoreOlder: this.#older || !isShown
    }
  }

  /** Something streams: `work` says what comes of it. `size`: of its operations, where the caller knows. */
  streamed(work: (fold: TurnFold) => readonly Op[], size?: number): void {
    this.#later(() => this.#dispatch(work(this.#fold), size))
  }

  close(): void {
    if (this.#opened) lastSeqs.set(this.#host, this.seq) // else those of the one before go on
    this.#closed = true
    this.#opened?.index.listeners.delete(this.#record)
  }

  readonly #record = (record: HistoryRecord, at: number, beside: readonly Op[]): void => {
    this.#later(() => this.#take(record, at, beside))
  }

  #take(record: HistoryRecord, at: number, beside: readonly Op[]): void {
    if (record.type === 'turn.started' && coreRecord(record)) {
      this.#older ||= this.#fold.timeline.items.length > 0
      this.#fold = new TurnFold(this.#fold.contents())
      this.#turnBytes = 0
    }
    for (const op of beside) {
      if (op.op === 'items.remove') this.#fold.remove(op.ids)
    }
    const told = this.#fold.take(record, at)
    const ops = [...beside, ...told, ...this.#known().index.entities.askedIn(told)]
    if (record.type === 'step.begin' && this.#turnBytes > heldBytes) this.#fold.forgetFrames()
    if (this.#fold.broken) {
      this.#fold.broken = false
      this.#known().journal.break()
      this.#ports.renew()
    } else this.#dispatch(ops)
  }

  /** Behind the events of the same records, or when somebody looks. */
  #later(work: () => void): void {
    if (this.#closed) return
    this.#waiting.push(work)
    if (!this.#ready) return
    if (!this.#soon) this.#catchUpIn(eventPasses + 1)
  }

  #catchUpIn(passes: number): void {
    if (passes === 0) this.#catchUp()
    else this.#soon = setImmediate(() => this.#catchUpIn(passes - 1))
  }

  #catchUp(): void {
    if (!this.#ready) return
    clearImmediate(this.#soon)
    this.#soon = undefined
    try {
      for (let work = this.#waiting.shift(); work; work = this.#waiting.shift()) work()
    } catch (error) {
      this.#waiting = []
      this.#ports.failed(error)
    }
  }

  #dispatch(ops: readonly Op[], size?: number): void {
    if (ops.length === 0) return
    const { meta } = this.#known().index.entities
    const llm = this.#ports.llm()
    const told = ops.map(op => opWithLimits(op, meta, llm))
    const bytes = size ?? JSON.stringify(told).length
    this.#turnBytes += bytes
    this.#ports.dispatch(this.#known().journal.add(told, bytes))
  }

  #known(): Opened {
    if (!this.#opened) throw new Error('the stream is not ready')
    return this.#opened
  }
}
