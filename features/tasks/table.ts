/** The tasks of one agent: those that run, and by its journal those that ran; told once, whatever happens in between. */
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../kernel/index.ts'
import type { Agent } from '../agent/index.ts'
import type { History, HistoryRecord, Tracked } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { LiveTask } from './live-task.ts'
import { lostRecord } from './lost.ts'
import { endOf, endOfFile } from './output.ts'
import type { PastOutput, PastOutputs } from './past-outputs.ts'
import {
  isUntold,
  leftRecord,
  reportedRecord,
  startedRecord,
  TAIL_BYTES,
  type TaskEntry,
  type TaskState,
  taskState,
  terminatedRecord
} from './records.ts'
import { type StopCause, TaskRefused, type TaskSpec, type TaskView } from './service.ts'
import { Telling } from './telling.ts'

export interface TableLimits {
  /** Tasks of the session that may run in the background when another one is started there; undefined: any number. */
  readonly max_running?: number | undefined
  readonly kill_grace_ms: number
}

export interface TablePorts {
  readonly now: () => Date
  readonly log: Logger
  readonly limits: () => TableLimits
  readonly engine: (agent: AgentHost) => Promise<Agent>
  /** Tasks of the session in the background. */
  readonly background: { count: number }
  /** Of the session, too. */
  readonly past: PastOutputs
}

const prefixes = { process: 'bash', agent: 'agent', question: 'question' } as const
/** Tasks that ended in the foreground and are still listed. */
const PAST = 50

export class TaskTable {
  readonly agent: AgentHost
  readonly telling: Telling
  readonly #history: History
  readonly #state: Tracked<TaskState>
  readonly #ports: TablePorts
  readonly #live = new Map<string, LiveTask>()
  /** Ended in the foreground. */
  readonly #past: { readonly view: TaskView; readonly printed: PastOutput }[] = []
  #closed = false
  readonly #closing = new AbortController()

  private constructor(agent: AgentHost, history: History, state: Tracked<TaskState>, ports: TablePorts) {
    this.agent = agent
    this.#history = history
    this.#state = state
    this.#ports = ports
    this.telling = new Telling(agent, history, state, { engine: ports.engine, log: ports.log, pathOf: id => this.#pathOf(id) })
  }

  /** What a dead process left running is lost, and ends that nobody was told of are told. */
  static async open(agent: AgentHost, history: History, ports: TablePorts): Promise<TaskTable> {
    const table = new TaskTable(agent, history, await history.track(taskState), ports)
    if (!agent.session.writable) return table
    await table.#closeLost()
    void table.telling.tellAll(entry => entry.end?.quiet !== true && table.#isOwn(entry))
    return table
  }

  #isOwn({ session_id, agent_id }: TaskEntry): boolean {
    return session_id === this.agent.session.id && agent_id === this.agent.id
  }

  async #closeLost(): Promise<void> {
    const lost = this.#state.value.entries.filter(({ end }) => !end)
    if (lost.length === 0) return
    const own = lost.some(entry => this.#isOwn(entry))
    const { work } = this.agent.session
    // Clients saw the session at work for them.
    if (own) work.background(1)
    try {
      const at = this.#ports.now().getTime()
      const records = await Promise.all(lost.map(entry => lostRecord(entry, this.#isOwn(entry), this.#pathOf(entry.info.taskId), at)))
      await this.#history.append(...records)
    } finally {
      if (own) work.background(-1)
    }
  }

  /** As `Tasks.start`. */
  async start(spec: TaskSpec): Promise<LiveTask> {
    this.agent.session.assertWritable()
    if (this.#closed) throw new TaskRefused('The session is closing; nothing new is started.')
    const { max_running } = this.#ports.limits()
    if (spec.background && max_running !== undefined && this.#ports.background.count >= max_running) {
      throw new TaskRefused(
        `${max_running} tasks run in the background, and no more may (background.max_running_tasks). Wait for one, or stop one.`
      )
    }
    const id = this.#newId(prefixes[spec.kind])
    const task = new LiveTask(id, spec, this.#pathOf(id), {
      agent: this.agent,
      now: this.#ports.now,
      log: this.#ports.log,
      graceMs: () => this.#ports.limits().kill_grace_ms,
      started: each => this.#started(each),
      terminated: each => this.#terminated(each),
      over: each => this.#over(each)
    })
    this.#live.set(id, task)
    task.begin()
    if (!spec.background) return task
    try {
      await task.detach()
    } catch (error) {
      task.stop('close', 'Its begin could not be recorded.')
      await task.ended
      throw error
    }
    return task
  }

  #newId(prefix: string): string {
    for (;;) {
      const id = `${prefix}-${Array.from({ length: 8 }, () => randomInt(36).toString(36)).join('')}`
      if (!this.#live.has(id) && !this.#entry(id)) return id
    }
  }

  #pathOf(id: string): string {
    return join(this.agent.dir, 'tasks', id, 'output.log')
  }

  #entry(id: string): TaskEntry | undefined {
    return this.#state.value.entries.find(({ info }) => info.taskId === id)
  }

  async #started(task: LiveTask): Promise<void> {
    const { info, spec } = task
    const { tool_call_id } = spec
    this.#ports.background.count++
    try {
      const { id, session } = this.agent
      const facts = { session_id: session.id, agent_id: id, info, ...(tool_call_id === undefined ? {} : { tool_call_id }) }
      await this.#history.append(startedRecord.of(facts))
    } catch (error) {
      this.#ports.background.count--
      throw error
    }
    this.agent.session.work.background(1)
  }

  /** `told`: the agent hears of it, with a turn; the session stays at work until that begins. */
  #gone(task: LiveTask, told?: Promise<void>): void {
    this.#live.delete(task.id)
    this.#ports.background.count--
    const { work } = this.agent.session
    if (told) void told.then(() => work.background(-1))
    else work.background(-1)
  }

  /** Again and again while the disk refuses; what is not on record when the session closes is lost for the next load. */
  async #terminated(task: LiveTask): Promise<void> {
    const { info, output, outcome, stopped, id } = task
    const end = terminatedRecord.of({
      info,
      tail: output.tail(TAIL_BYTES),
      output_size: output.bytes,
      saved: output.saved,
      ...(stopped?.why === 'close' ? { quiet: true } : {}),
      ...(outcome?.hint === undefined ? {} : { hint: outcome.hint })
    })
    // Calls come and are aborted while the disk is slow.
    const reported = () =>
      this.telling
        .claimed(id)
        .slice(0, 1)
        .map(({ tool_call_id }) => reportedRecord.of({ task_ids: [id], tool_call_id }))
    const untold = () => {
      const entry = this.#entry(id)
      return entry && isUntold(entry) ? entry : undefined
    }
    const saved = await this.#insist(() => [end, ...reported()])
    if (saved && untold() && reported().length > 0) await this.#insist(reported)
    const entry = saved ? untold() : undefined
    const told = entry && entry.end?.quiet !== true ? this.telling.tell(entry) : undefined
    this.#gone(task, this.agent.record.type === 'sub' ? undefined : told) // a subagent begins nothing by itself
    for (const claim of this.telling.claimed(id)) claim.take(id)
  }

  async #insist(records: () => readonly HistoryRecord[]): Promise<boolean> {
    for (let wait = 100; ; wait = Math.min(2 * wait, 10_000)) {
      try {
        await this.#history.append(...records())
        return true
      } catch (err) {
        this.#ports.log.error({ err, session_id: this.agent.session.id }, 'the end of a task could not be saved')
        if (this.#closing.signal.aborted) return false
        await pause(wait, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined) // closing: tried once more
      }
    }
  }

  #over(task: LiveTask): void {
    this.#live.delete(task.id)
    if (task.detached || !task.visible) return
    const { output: _output, ...view } = task.view // nothing else of the task is kept
    const printed = this.#ports.past.keep(task.output.tail())
    this.#past.push({ view: { ...view, output: async bytes => printed.tail(bytes) }, printed })
    if (this.#past.length > PAST) this.#past.shift()?.printed.drop()
    for (const claim of this.telling.claimed(task.id)) claim.take(task.id)
  }

  /** Own ones; `find` also knows those that a copied journal tells of. */
  list(): readonly TaskView[] {
    const { entries } = this.#state.value
    const ended = entries.filter(entry => this.#isOwn(entry) && !this.#live.has(entry.info.taskId)).map(entry => this.#viewOf(entry))
    const live = [...this.#live.values()].filter(task => task.visible)
    const all = [...ended, ...this.#past.map(({ view }) => view), ...live.map(task => task.view)]
    return all.sort((a, b) => a.info.startedAt - b.info.startedAt)
  }

  find(id: string): TaskView | undefined {
    const live = this.#live.get(id)
    if (live) return live.visible ? live.view : undefined
    const entry = this.#entry(id)
    return entry ? this.#viewOf(entry) : this.#past.find(({ view }) => view.info.taskId === id)?.view
  }

  live(id: string): LiveTask | undefined {
    const task = this.#live.get(id)
    return task?.visible ? task : undefined
  }

  /** As `Tasks.stop`. */
  async stop(id: string, cause: StopCause, { reason, silent }: { readonly reason: string; readonly silent?: boolean }): Promise<boolean> {
    const task = this.live(id)
    if (!task || task.outcome) return false
    if (silent) task.silent = true
    task.stop(cause, reason)
    const { info } = await task.ended
    return info.status === 'killed' && task.stopped?.why === cause
  }

  /** As `UndoFollower.undone`. */
  async undone(from: number): Promise<void> {
    const begun = this.#state.value.entries.filter(entry => entry.begun >= from && this.#isOwn(entry))
    await Promise.all(
      begun.map(async ({ info: { taskId }, end, told }) => {
        await this.stop(taskId, 'user', { reason: 'The turn that began it was taken back.', silent: true })
        if (end && told === undefined) await this.telling.withdraw(taskId)
      })
    )
  }

  /** Tasks in the background that began before the last compaction, and how many compactions there were. */
  overlooked(): { readonly tasks: readonly TaskView[]; readonly compactions: number } {
    const { entries, compactions } = this.#state.value
    const tasks = entries.flatMap(({ info, compactions: before }) => {
      const task = before < compactions ? this.#live.get(info.taskId) : undefined
      return task ? [task.view] : []
    })
    return { tasks, compactions }
  }

  #viewOf({ info, tool_call_id, end }: TaskEntry): TaskView {
    const path = this.#pathOf(info.taskId)
    const tail = (bytes: number) => endOf(Buffer.from(end?.tail ?? ''), bytes)
    return {
      info,
      agent: this.agent,
      ...(tool_call_id === undefined ? {} : { tool_call_id }),
      ...(end?.saved ? { output_path: path } : {}),
      output_size: end?.output_size ?? 0,
      output: async bytes => (end?.saved ? await endOfFile(path, bytes) : undefined) ?? tail(bytes)
    }
  }

  /** Stops what runs and waits for it; `leave`: what can goes on without this server. */
  async end(leave = false): Promise<void> {
    await Promise.all(
      [...this.#live.values()].map(async task => {
        if (leave && (await task.leave())) {
          await this.#history.append(leftRecord.of({ task_id: task.id })).catch((err: unknown) => {
            this.#ports.log.error({ err, task_id: task.id }, 'that a task was left running could not be saved')
          })
          this.#gone(task) // nothing of it is heard any more, also when the disk refuses
          return
        }
        task.stop('close', 'The session was closed.')
        await task.ended
      })
    )
  }

  /** Nothing is started any more. */
  async shutDown(leave: boolean): Promise<void> {
    this.#closed = true
    this.telling.close()
    this.#closing.abort()
    await this.end(leave)
  }

  close(): Promise<void> {
    return this.shutDown(false)
  }
}
