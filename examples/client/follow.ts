/** Follows the transcripts of one session over connections that come and go: baselines, operations, and pages for what is older. */
import { type Connection, type Rest, type ServerFrame, type TranscriptPage, unwrap } from '../../client/index.ts'
import { type Baseline, Transcript } from './transcript.ts'

type Reset = Extract<ServerFrame, { type: 'transcript.reset' }>
type Ops = Extract<ServerFrame, { type: 'transcript.ops' }>
type Batch = Pick<Ops['payload'], 'seq' | 'ops'>

interface Followed {
  /** Newest batch that came. */
  seq: number
  transcript: Transcript
  /** Batches behind the baseline while its older turns are being read; undefined when nothing is. */
  waiting: Batch[] | undefined
}

const path = '/api/v1/sessions/{session_id}/transcript'

export class Follower {
  readonly #rest: Rest
  readonly #session_id: string
  readonly #agents = new Map<string, Followed>()
  readonly #reading = new Set<Promise<void>>()
  #closed = false

  constructor(rest: Rest, session_id: string) {
    this.#rest = rest
    this.#session_id = session_id
  }

  /** Subscribes where it left off; baselines and missed batches come as frames before it resolves. */
  async attach(connection: Connection): Promise<void> {
    await connection.request('subscribe_v2', {
      session_id: this.#session_id,
      transcript: { '*': 'delta' },
      transcript_since: Object.fromEntries([...this.#agents].map(([agent, { seq }]) => [agent, seq]))
    })
  }

  take(frame: ServerFrame): void {
    if (frame.type === 'transcript.reset') this.#reset(frame)
    else if (frame.type === 'transcript.ops') this.#apply(frame.payload.agent_id, [frame.payload])
  }

  /** Takes what was missed by REST, without a connection. */
  async catchUp(agent_id = 'main'): Promise<void> {
    const known = this.#agents.get(agent_id)
    if (!known) return
    const query = { agent_id, since_seq: known.seq }
    const { batches, complete } = await unwrap(this.#rest.GET(`${path}/ops`, { params: { path: { session_id: this.#session_id }, query } }))
    if (this.#agents.get(agent_id) !== known) return
    if (complete) this.#apply(agent_id, batches)
    else this.#read(agent_id)
  }

  /** Reads nothing any more. */
  close(): void {
    this.#closed = true
  }

  /** Resolves when nothing is being read any more. */
  async settled(): Promise<void> {
    while (this.#reading.size > 0) await Promise.all(this.#reading)
  }

  get agents(): readonly string[] {
    return [...this.#agents.keys()]
  }

  seq(agent_id = 'main'): number {
    return this.#agents.get(agent_id)?.seq ?? 0
  }

  view(agent_id = 'main'): Baseline | undefined {
    return this.#agents.get(agent_id)?.transcript.view()
  }

  #reset({ payload: { agent_id, seq, snapshot, has_more_older } }: Reset): void {
    this.#agents.set(agent_id, { seq, transcript: new Transcript(snapshot), waiting: undefined })
    if (has_more_older) this.#read(agent_id)
  }

  /** A batch that is known already (from another way) is left out. */
  #apply(agent_id: string, batches: readonly Batch[]): void {
    const known = this.#agents.get(agent_id)
    for (const batch of batches) {
      if (!known || batch.seq <= known.seq) continue
      known.seq = batch.seq
      if (known.waiting) known.waiting.push(batch)
      else if (!batch.ops.every(op => known.transcript.apply(op))) this.#read(agent_id)
    }
  }

  /** Reads everything there is, and applies the batches that came meanwhile. */
  #read(agent_id: string): void {
    const known = this.#agents.get(agent_id)
    if (!known || known.waiting) return
    known.waiting = []
    const reading = this.#fill(agent_id, known).finally(() => this.#reading.delete(reading))
    this.#reading.add(reading)
  }

  /** A server that is away now is asked again, until a baseline takes the place of what was read. */
  async #fill(agent_id: string, known: Followed): Promise<void> {
    for (let pause = 10; !this.#closed && this.#agents.get(agent_id) === known; pause = Math.min(pause * 2, 1000)) {
      try {
        const { seq, ...base } = await this.#pages(agent_id)
        const waiting = (known.waiting ?? []).filter(batch => batch.seq > seq)
        known.transcript = new Transcript(base)
        known.seq = Math.max(known.seq, seq)
        if (!waiting.every(({ ops }) => ops.every(op => known.transcript.apply(op)))) continue
        known.waiting = undefined
        return
      } catch {
        await new Promise(resolve => setTimeout(resolve, pause))
      }
    }
  }

  async #pages(agent_id: string): Promise<Baseline & { readonly seq: number }> {
    const get = (more: { before_turn?: string }) =>
      unwrap(
        this.#rest.GET(path, { params: { path: { session_id: this.#session_id }, query: { agent_id, page_size: 100, ...more } } })
      ) as Promise<TranscriptPage>
    const newest = await get({})
    const { seq = 0 } = newest
    let { items, has_more } = newest
    while (has_more) {
      const first = items.find(item => item.kind === 'turn')
      if (!first) break
      const older = await get({ before_turn: first.turnId })
      items = [...older.items, ...items]
      has_more = older.has_more
    }
    return { ...newest, items, seq }
  }
}
