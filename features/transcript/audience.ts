/** Who follows the transcripts of a session: connections with a grade for each agent, and what each of them gets. */
import type { Connection } from '../../kernel/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { Grade } from './contract.ts'
import type { Batch } from './op-journal.ts'
import type { Op } from './shapes.ts'
import type { AgentStream } from './stream.ts'
import { suppressed } from './suppressed.ts'

export interface AudiencePorts {
  readonly pack: string
  /** Sends a frame of the session. */
  readonly send: (connection: Connection, session: Session, type: string, payload: object) => void
}

interface Follower {
  grades: ReadonlyMap<string, Grade>
  /** Agents whose baseline the client has, with the grade of it. */
  readonly has: Map<string, Grade>
  /** Ends its part in the audience; also done when the connection ends. */
  readonly leave: () => unknown
}

const rank: Readonly<Record<Grade, number>> = { off: 0, turn: 1, block: 2, delta: 3 }
const finer: ReadonlySet<Op['op']> = new Set(['step.upsert', 'frame.upsert', 'append'])

/** The operations of a batch that a grade shows. */
function shownOps(ops: readonly Op[], grade: Grade): readonly Op[] {
  if (grade === 'delta') return ops
  if (grade === 'block') return ops.filter(({ op }) => op !== 'append')
  return grade === 'turn' ? ops.filter(({ op }) => !finer.has(op)) : []
}

export class Audience {
  readonly #session: Session
  readonly #ports: AudiencePorts
  readonly #followers = new Map<Connection, Follower>()

  constructor(session: Session, ports: AudiencePorts) {
    this.#session = session
    this.#ports = ports
  }

  /** Puts these grades in place of those that the connection had. Nobody gets less than before until a baseline was decided on. */
  set(connection: Connection, grades: ReadonlyMap<string, Grade>): void {
    const known = this.#followers.get(connection)
    if (known) {
      known.grades = grades
      for (const [agent, had] of known.has) {
        const grade = gradeOf(known, agent)
        if (rank[grade] < rank[had]) known.has.set(agent, grade)
      }
      return
    }
    const hides = (type: string, agent: string) => suppressed.has(type) && gradeOf(follower, agent) !== 'off'
    const reveal = connection.suppress(this.#session.id, this.#ports.pack, hides)
    const leave = connection.own(() => {
      this.#followers.delete(connection)
      reveal()
    })
    const follower: Follower = { grades, has: new Map(), leave }
    this.#followers.set(connection, follower)
  }

  /** Without ids: all agents. */
  drop(connection: Connection, agents?: readonly string[]): void {
    const known = this.#followers.get(connection)
    if (!known) return
    const grades = new Map(known.grades)
    for (const id of agents ?? []) grades.set(id, 'off')
    if (agents && [...grades.values()].some(grade => grade !== 'off')) {
      this.set(connection, grades)
    } else {
      known.leave()
    }
  }

  /** The session is closed: who followed gets events again, as without a transcript. */
  close(): void {
    for (const { leave } of [...this.#followers.values()]) leave()
  }

  wants(agent_id: string): boolean {
    return [...this.#followers.values()].some(follower => gradeOf(follower, agent_id) !== 'off')
  }

  /** Brings a connection up to date with an agent, once: with what it missed, or with a baseline when it now gets more than before. */
  begin(connection: Connection, agent: AgentHost, stream: AgentStream, since?: number): void {
    const follower = this.#followers.get(connection)
    const grade = follower ? gradeOf(follower, agent.id) : 'off'
    if (!follower || grade === 'off') return
    const missed = since === undefined ? undefined : stream.since(since)
    const had = follower.has.get(agent.id) ?? 'off'
    if (missed?.complete) for (const batch of missed.batches) this.#ops(connection, agent, batch, grade)
    else if (rank[grade] > rank[had] || since !== undefined) this.#reset(connection, agent, stream, grade)
    // Not before: what waited in the stream is taken into a baseline when one is asked for, and goes out as batches to those who have theirs.
    follower.has.set(agent.id, grade)
  }

  /** An agent that is new, or whose timeline operations cannot describe. */
  beginAll(agent: AgentHost, stream: AgentStream, anew: boolean): void {
    if (anew) for (const { has } of this.#followers.values()) has.delete(agent.id)
    for (const [connection, { has }] of this.#followers) if (!has.has(agent.id)) this.begin(connection, agent, stream)
  }

  /** The events of the connection were replayed from a cursor: its transcripts begin anew, too. */
  again(connection: Connection, streamOf: (agent: AgentHost) => AgentStream | undefined): void {
    const follower = this.#followers.get(connection)
    for (const agent of follower ? this.#session.agents() : []) {
      const stream = follower?.has.delete(agent.id) ? streamOf(agent) : undefined
      if (stream) this.begin(connection, agent, stream)
    }
  }

  dispatch(agent: AgentHost, batch: Batch): void {
    for (const [connection, { has }] of this.#followers) {
      const grade = has.get(agent.id)
      if (grade) this.#ops(connection, agent, batch, grade)
    }
  }

  #ops(connection: Connection, agent: AgentHost, { seq, ops }: Batch, grade: Grade): void {
    const shown = shownOps(ops, grade)
    if (shown.length > 0) this.#send(connection, 'transcript.ops', { agent_id: agent.id, ops: shown, seq })
  }

  #reset(connection: Connection, agent: AgentHost, stream: AgentStream, grade: Grade): void {
    const snapshot = stream.baseline(grade !== 'turn')
    this.#send(connection, 'transcript.reset', { agent_id: agent.id, snapshot, has_more_older: snapshot.hasMoreOlder, seq: stream.seq })
  }

  #send(connection: Connection, type: string, payload: object): void {
    this.#ports.send(connection, this.#session, type, { type, ...payload })
  }
}

const gradeOf = ({ grades }: Pick<Follower, 'grades'>, agent: string): Grade => grades.get(agent) ?? grades.get('*') ?? 'off'
