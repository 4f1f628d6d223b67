/** The scheduled prompts of one session: made, deleted, fired; each fire is told to the agent once. */
import { inOrder } from '../../kernel/index.ts'
import type { Agent } from '../agent/index.ts'
import { asData, type History, type Tracked } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { type CronState, createdRecord, cronState, deletedRecord, type Fire, firedRecord, type Job } from './records.ts'
import { nextDue, passedAt } from './timing.ts'

export interface TablePorts {
  readonly now: () => Date
  readonly newId: () => string
  readonly engine: (agent: AgentHost) => Promise<Agent>
  readonly jitter: () => boolean
  /** Jobs grow old. */
  readonly stale: () => boolean
  /** The next time may be another one, ms; undefined: there is no job any more. Resolves when the next server knows it, too. */
  readonly changed: (due: number | undefined) => Promise<void>
}

export const MAX_JOBS = 50
/** A recurring job fires once more after this time, and is over. */
const STALE_MS = 7 * 24 * 3600 * 1000

export class CronTable {
  readonly agent: AgentHost
  readonly #history: History
  readonly #state: Tracked<CronState>
  readonly #ports: TablePorts
  /** One after the other, so that they can be counted. */
  readonly #inOrder = inOrder()

  private constructor(agent: AgentHost, history: History, state: Tracked<CronState>, ports: TablePorts) {
    this.agent = agent
    this.#history = history
    this.#state = state
    this.#ports = ports
  }

  static async open(agent: AgentHost, history: History, ports: TablePorts): Promise<CronTable> {
    return new CronTable(agent, history, await history.track(cronState), ports)
  }

  /** Those of this session; a fork does not inherit any. */
  jobs(): readonly Job[] {
    return this.#state.value.jobs.filter(({ session_id }) => session_id === this.agent.session.id)
  }

  #fires(): readonly Fire[] {
    return this.#state.value.fires.filter(({ session_id }) => session_id === this.agent.session.id)
  }

  /** On record when it resolves; undefined: there are as many as may be. */
  create(given: Pick<Job, 'cron' | 'prompt' | 'recurring'>): Promise<Job | undefined> {
    return this.#inOrder(() => this.#create(given))
  }

  async #create(given: Pick<Job, 'cron' | 'prompt' | 'recurring'>): Promise<Job | undefined> {
    if (this.jobs().length >= MAX_JOBS) return undefined
    const job = { session_id: this.agent.session.id, job_id: this.#ports.newId(), ...given, created_at: this.#ports.now().getTime() }
    await this.#history.append(createdRecord.of(job))
    await this.announce()
    return { ...job, cursor: job.created_at }
  }

  /** False: there is no such job. */
  async delete(job_id: string): Promise<boolean> {
    if (!this.jobs().some(job => job.job_id === job_id)) return false
    await this.#history.append(deletedRecord.of({ job_id }))
    await this.announce()
    return true
  }

  /** When a job fires next, ms. */
  async dueAt(job: Job): Promise<number | undefined> {
    return (await nextDue(job, job.cursor, this.#ports.jitter()))?.at
  }

  /** Says when it should be looked at next: now, when the agent lacks a message. */
  async announce(): Promise<void> {
    const times = await Promise.all(this.jobs().map(job => this.dueAt(job)))
    const dues = times.filter(time => time !== undefined)
    if (this.#fires().length > 0) dues.push(this.#ports.now().getTime())
    await this.#ports.changed(dues.length === 0 ? undefined : Math.min(...dues))
  }

  /** Fires what is due, and tells the agent what it was not told. */
  async fire(): Promise<void> {
    for (const fire of this.#fires()) await this.#tell(fire)
    const now = this.#ports.now().getTime()
    for (const job of this.jobs()) {
      const passed = await passedAt(job, now, this.#ports.jitter())
      // It may have been deleted meanwhile.
      if (!passed || !this.jobs().includes(job)) continue
      const { session_id, job_id, cron, recurring, prompt } = job
      const stale = recurring && this.#ports.stale() && now - job.created_at > STALE_MS
      const origin = { kind: 'cron_job' as const, jobId: job_id, cron, recurring, coalescedCount: passed.count, stale }
      const fire = { session_id, notice_id: `msg_cron_${job_id}_${passed.cursor}`, origin, prompt }
      await this.#history.append(firedRecord.of({ ...fire, job_id, cursor: passed.cursor, last: stale || !recurring }))
      await this.#tell(fire)
    }
    await this.announce()
  }

  async #tell({ notice_id, origin, prompt }: Fire): Promise<void> {
    const over = `<system-reminder>\nThis schedule (${origin.cron}) is older than 7 days and was deleted now. If it is still needed, create it anew.\n</system-reminder>`
    const content = [{ type: 'text', text: asData(prompt) }, ...(origin.stale ? [{ type: 'text', text: over }] : [])]
    const engine = await this.#ports.engine(this.agent)
    await engine.inject({ id: notice_id, content, origin })
  }
}
