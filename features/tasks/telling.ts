/** How an agent hears of the ends of its tasks: by a notice, by the result of a call, and in whatever order, once. */
import type { Logger } from '../../kernel/index.ts'
import type { Admission, Agent } from '../agent/index.ts'
import type { History, Tracked } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { isUntold, noticeId, reportedRecord, type TaskEntry, type TaskState } from './records.ts'
import { notification, notificationId } from './texts.ts'

/** A call that waits for one of these tasks; its result tells of the end. */
export interface Claim {
  readonly task_ids: ReadonlySet<string>
  readonly tool_call_id: string
  readonly take: (task_id: string) => void
}

export interface TellingPorts {
  readonly engine: (agent: AgentHost) => Promise<Agent>
  readonly log: Logger
  /** Of the output of a task. */
  readonly pathOf: (task_id: string) => string
}

export class Telling {
  readonly #agent: AgentHost
  readonly #history: History
  readonly #state: Tracked<TaskState>
  readonly #ports: TellingPorts
  /** With the task whose end the result tells, once one has ended. */
  readonly #claims = new Map<Claim, string | undefined>()
  #closed = false

  constructor(agent: AgentHost, history: History, state: Tracked<TaskState>, ports: TellingPorts) {
    this.#agent = agent
    this.#history = history
    this.#state = state
    this.#ports = ports
  }

  /** What cannot be told any more is told after the next load. */
  close(): void {
    this.#closed = true
  }

  /** A subagent begins nothing by itself. */
  #admission(): Admission {
    return this.#agent.record.type === 'sub' ? 'activeOrNextTurn' : 'activeOrNewTurn'
  }

  /** Never rejects: what cannot be told now is told with the next step. */
  async tell({ info, ...entry }: TaskEntry, admission = this.#admission()): Promise<void> {
    try {
      const engine = await this.#ports.engine(this.#agent)
      if (this.#entry(info.taskId)?.undone) return // meanwhile
      await engine.inject({
        id: noticeId(info.taskId),
        content: notification({ info, ...entry }, this.#ports.pathOf(info.taskId)),
        origin: { kind: 'task', taskId: info.taskId, status: info.status, notificationId: notificationId(info) },
        admission
      })
    } catch (err) {
      if (!this.#closed) this.#ports.log.warn({ err, task_id: info.taskId }, 'the end of a task is told with the next step')
    }
  }

  async tellAll(which: (entry: TaskEntry) => boolean, admission = this.#admission()): Promise<void> {
    for (const entry of this.#state.value.entries) if (isUntold(entry) && which(entry)) await this.tell(entry, admission)
  }

  /** What the agent was not told of yet comes with the step that begins: after an undo, a close, a disk that refused. */
  tellWithStep(): Promise<void> | undefined {
    return this.#state.value.entries.some(isUntold) ? this.tellAll(() => true, 'activeOrNextTurn') : undefined
  }

  /** Calls that wait for the task, which has ended; they wait for no other any more. */
  claimed(id: string): readonly Claim[] {
    const claims = [...this.#claims].flatMap(([claim, ended = id]) => (ended === id && claim.task_ids.has(id) ? [claim] : []))
    for (const claim of claims) this.#claims.set(claim, id)
    return claims
  }

  /** The next end of one of the tasks is told by the result of this call. Returns the undo. */
  claim(claim: Claim): () => void {
    this.#claims.set(claim, undefined)
    return () => this.#claims.delete(claim)
  }

  #entry(task_id: string): TaskEntry | undefined {
    return this.#state.value.entries.find(({ info }) => info.taskId === task_id)
  }

  /** A notice of the end that waits is not given to the model. */
  async withdraw(task_id: string): Promise<void> {
    const engine = await this.#ports.engine(this.#agent)
    await engine.withdrawNotice(noticeId(task_id))
  }

  /** The result of this call tells of the end: it is told in no other way, unless it was already. */
  async report(task_id: string, tool_call_id: string): Promise<void> {
    const entry = this.#entry(task_id)
    if (!entry || !isUntold(entry)) return
    await this.withdraw(task_id)
    if (isUntold(this.#entry(task_id) ?? entry)) await this.#history.append(reportedRecord.of({ task_ids: [task_id], tool_call_id }))
  }
}
