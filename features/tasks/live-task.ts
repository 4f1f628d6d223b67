/** A task that runs: its output, its limits, the call that waits for it, and how it is stopped. */
import { type Logger, longestMs } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { TaskInfo } from './contract.ts'
import { endOf, MAX_BYTES, TaskOutput } from './output.ts'
import { overtimeText, type StopCause, type Task, type TaskOutcome, type TaskSpec, TaskStopped, type TaskView } from './service.ts'

export interface LivePorts {
  readonly agent: AgentHost
  readonly now: () => Date
  readonly log: Logger
  /** Between the polite end and the other one, ms. */
  readonly graceMs: () => number
  /** Puts on record that it runs in the background. Rejects when the disk refuses. */
  readonly started: (task: LiveTask) => Promise<void>
  /** Puts the end of a task in the background on record; never rejects. */
  readonly terminated: (task: LiveTask) => Promise<void>
  /** It is over, also on record. */
  readonly over: (task: LiveTask) => void
}

/** A call that is aborted is given up soon: nothing of it may be left by then. */
const TURN_GRACE_MS = 1000
/** When the session or the pack ends. */
const CLOSE_GRACE_MS = 200

export class LiveTask implements Task {
  readonly id: string
  readonly spec: TaskSpec
  readonly output: TaskOutput
  readonly ended: Promise<TaskView>
  readonly #ports: LivePorts
  readonly #controller = new AbortController()
  readonly #startedAt: number
  #end: { readonly at: number; readonly outcome: TaskOutcome } | undefined
  #settled: (view: TaskView) => void = () => {}
  #detached = false
  #recorded = false
  #detaching: Promise<boolean> | undefined
  #timer: NodeJS.Timeout | undefined
  /** The call that waits in the foreground goes on. */
  #release: (how: 'ended' | 'detached' | 'overtime') => void = () => {}
  readonly #released: Promise<'ended' | 'detached' | 'overtime'>
  #overtime = false
  #leaving: Promise<boolean> | undefined
  #left = false
  /** The work is. */
  #over = false
  /** The agent is not told of the end. */
  silent = false

  constructor(id: string, spec: TaskSpec, path: string, ports: LivePorts) {
    this.id = id
    this.spec = spec
    this.#ports = ports
    this.output = new TaskOutput(path)
    this.#startedAt = ports.now().getTime()
    this.ended = new Promise(resolve => {
      this.#settled = resolve
    })
    this.#released = new Promise(resolve => {
      this.#release = resolve
    })
  }

  get detached(): boolean {
    return this.#detached
  }

  /** Nobody sees a task that was started in the background before its begin is on disk. */
  get visible(): boolean {
    return !this.spec.background || this.#recorded
  }

  get outcome(): TaskOutcome | undefined {
    return this.#end?.outcome
  }

  /** Why it was stopped; undefined: it was not. */
  get stopped(): TaskStopped | undefined {
    const reason: unknown = this.#controller.signal.reason
    return reason instanceof TaskStopped ? reason : undefined
  }

  /** Begins the work, in this tick. */
  begin(): void {
    this.#limitForeground()
    let work: Promise<TaskOutcome>
    try {
      work = this.spec.run({ id: this.id, signal: this.#controller.signal, output: text => this.#print(text) })
    } catch (error) {
      work = Promise.reject(error)
    }
    void this.#settle(work)
  }

  #limitForeground(): void {
    const { background, foreground_ms, overtime = 'stop' } = this.spec
    if (background || foreground_ms === undefined) return
    this.#after(foreground_ms, () => {
      if (overtime === 'stop') return this.stop('timeout', overtimeText(foreground_ms))
      this.#overtime = true
      this.detach().catch(err => {
        this.#ports.log.error({ err, task_id: this.id }, 'a task could not be moved to the background; it is stopped')
        this.stop('timeout', overtimeText(foreground_ms))
      })
    })
  }

  #print(text: string): void {
    if (this.#end || this.output.bytes > MAX_BYTES) return
    this.output.add(text)
    if (this.output.bytes > MAX_BYTES) {
      this.stop('output', 'It printed more than 16 MiB. Send long output to a file, or filter it.', 0)
    }
  }

  /** Into the background; on record when it resolves. False: it is over, or there already. */
  detach(): Promise<boolean> {
    if (this.#end || this.#detached) return Promise.resolve(false)
    this.#detaching ??= this.#detach().finally(() => {
      this.#detaching = undefined
    })
    return this.#detaching
  }

  async #detach(): Promise<boolean> {
    clearTimeout(this.#timer)
    this.#detached = true // what is put on record says so
    try {
      await this.#ports.started(this)
    } catch (error) {
      this.#detached = false
      if (!this.#end) this.#limitForeground()
      throw error
    }
    this.#recorded = true
    this.output.save()
    const { timeout_ms = 0 } = this.spec
    if (timeout_ms > 0 && !this.#end) this.#after(timeout_ms, () => this.stop('timeout', overtimeText(timeout_ms)))
    this.#release(this.#overtime ? 'overtime' : 'detached')
    return true
  }

  async foreground(signal: AbortSignal): Promise<'ended' | 'detached' | 'overtime'> {
    const abort = async () => {
      const moving = this.#detaching?.catch(() => false)
      if (moving ? await moving : this.#detached) return
      this.stop('turn', 'The call was aborted.', Math.min(TURN_GRACE_MS, this.#ports.graceMs()))
    }
    const onAbort = () => void abort()
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      return await this.#released
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The first reason counts. Does nothing once it is over. */
  stop(cause: StopCause, reason: string, grace_ms?: number): void {
    if (this.#over || this.#left) return
    const grace = grace_ms ?? (cause === 'close' ? CLOSE_GRACE_MS : this.#ports.graceMs())
    this.#controller.abort(new TaskStopped(cause, reason, grace))
  }

  /** Lets it go on without this server. False: it cannot. Nothing of it is heard after that. */
  leave(): Promise<boolean> {
    this.#leaving ??= this.#leave()
    return this.#leaving
  }

  async #leave(): Promise<boolean> {
    if (this.#end || !this.#detached || !this.spec.leave) return false
    try {
      const flushed = () => {
        this.#addUnfinished() // the rest of this line goes into the file from elsewhere
        return this.output.finish(true)
      }
      if (!(await this.spec.leave(this.output.path, flushed))) return false
    } catch (err) {
      this.#ports.log.error({ err, task_id: this.id }, 'a task could not be left running; it is stopped')
      return false
    }
    this.#left = true
    clearTimeout(this.#timer)
    return true
  }

  #addUnfinished(): void {
    const rest = this.spec.unfinished?.() ?? ''
    if (rest !== '' && this.output.bytes <= MAX_BYTES) this.output.add(rest)
  }

  #after(ms: number, then: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(then, Math.min(ms, longestMs))
  }

  async #settle(work: Promise<TaskOutcome>): Promise<void> {
    let outcome: TaskOutcome
    try {
      outcome = await work
    } catch (err) {
      this.#ports.log.error({ err, task_id: this.id }, 'the work of a task failed')
      outcome = { status: 'failed', reason: err instanceof Error ? err.message : String(err) }
    }
    this.#over = true
    if (await this.#leaving) return
    const { stopped } = this
    if (stopped) outcome = { ...outcome, status: stopped.why === 'timeout' ? 'timed_out' : 'killed', reason: stopped.message }
    this.#end = { at: this.#ports.now().getTime(), outcome }
    await this.#detaching?.catch(() => false) // whoever asked for it hears of it
    clearTimeout(this.#timer)
    this.#addUnfinished()
    await this.output.finish(this.#detached)
    if (this.#detached) await this.#ports.terminated(this)
    this.#ports.over(this)
    this.#release('ended')
    this.#settled(this.view)
  }

  /** As it is now. */
  get info(): TaskInfo {
    const { description, timeout_ms = 0, foreground_ms, tool_call_id: parentToolCallId } = this.spec
    const facts = this.spec.facts()
    const { at = null, outcome } = this.#end ?? {}
    const limit = this.#detached ? timeout_ms : (foreground_ms ?? 0)
    const own = {
      taskId: this.id,
      description,
      status: outcome?.status ?? ('running' as const),
      ...(this.#detached ? { detached: true } : {}),
      startedAt: this.#startedAt,
      endedAt: at,
      ...(outcome?.reason === undefined ? {} : { stopReason: outcome.reason }),
      ...(outcome && this.silent ? { terminalNotificationSuppressed: true } : {}),
      ...(limit > 0 ? { timeoutMs: limit } : {})
    }
    if (facts.kind !== 'process') return { ...facts, ...own }
    return { ...facts, ...(parentToolCallId === undefined ? {} : { parentToolCallId }), ...own, exitCode: outcome?.exit_code ?? null }
  }

  get view(): TaskView {
    const { output } = this
    const unfinished = () => (this.#end ? '' : (this.spec.unfinished?.() ?? ''))
    return {
      info: this.info,
      agent: this.#ports.agent,
      ...(this.spec.tool_call_id === undefined ? {} : { tool_call_id: this.spec.tool_call_id }),
      ...(output.saved ? { output_path: output.path } : {}),
      output_size: output.bytes,
      output: async bytes => endOf(Buffer.from(output.tail(bytes) + unfinished()), bytes)
    }
  }
}
