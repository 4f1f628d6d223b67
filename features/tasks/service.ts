/** Work that may go on beside the conversation: started for an agent, waited for or not, stopped, told of once. */
import { serviceToken } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { TaskInfo } from './contract.ts'

export type TaskKind = TaskInfo['kind']
export type TaskStatus = TaskInfo['status']

type FactsOf<I> = I extends { readonly kind: infer K }
  ? Omit<I, 'taskId' | 'description' | 'status' | 'detached' | 'startedAt' | 'endedAt' | 'stopReason' | 'timeoutMs' | 'exitCode'> & {
      readonly kind: K
    }
  : never
/** What is told of a task beside what all tasks have; union on `kind`. */
export type TaskFacts = FactsOf<TaskInfo>

/**
 * Why a task was stopped. `user`: over the API. `tool`: by its agent. `timeout`: over its time. `output`: it printed too much. `turn`: the
 * call that waited for it was aborted. `close`: its session or its pack ends.
 */
export type StopCause = 'user' | 'tool' | 'timeout' | 'output' | 'turn' | 'close'

/** Reason of the signal of a task. */
export class TaskStopped extends Error {
  readonly why: StopCause
  /** How long the work may take to end politely, ms; what is left then must be ended at once. */
  readonly grace_ms: number

  constructor(cause: StopCause, reason: string, grace_ms: number) {
    super(reason)
    this.name = 'TaskStopped'
    this.why = cause
    this.grace_ms = grace_ms
  }
}

/** What a call declares that starts work in the background, so that a TaskList behind it in the response shows it. */
export const newTask = { kind: 'change', thing: 'tasks' } as const

/** Why work was stopped that took longer than it may. */
export const overtimeText = (ms: number): string => `It took longer than ${ms / 1000} s.`

/** What the work of a task gets. */
export interface TaskRun {
  readonly id: string
  /** Aborts when the work must end; the reason is a `TaskStopped`. */
  readonly signal: AbortSignal
  /** Adds to the output. The last 1 MiB stays in memory, in the background all of it is in a file; above 16 MiB the task is stopped. */
  output(text: string): void
}

/** How the work ended by itself. One that was stopped counts as `timed_out` or `killed`, whatever it answers. */
export interface TaskOutcome {
  readonly status: 'completed' | 'failed' | 'timed_out' | 'killed'
  /** Of a process. */
  readonly exit_code?: number
  /** Why it did not complete, as a sentence. */
  readonly reason?: string
  /** Goes into the notification: how to go on from here. */
  readonly hint?: string
}

export interface TaskSpec {
  readonly description: string
  /** Asked when `run` has been called, at a detach, and at the end: what is not known at the beginning may come later. */
  readonly facts: () => TaskFacts
  readonly kind: TaskKind
  /** The call that starts it. */
  readonly tool_call_id?: string
  /** Nobody waits for it from the beginning. Default false. */
  readonly background?: boolean
  /** Time in the background, ms, from its beginning there; absent or 0: no limit. */
  readonly timeout_ms?: number
  /** Time in the foreground, ms; absent: no limit. */
  readonly foreground_ms?: number
  /** What happens then. Default `stop`. */
  readonly overtime?: 'detach' | 'stop'
  /** Called once, before `start` resolves; begins the work in the same tick. Resolves when nothing of it is left. */
  run(task: TaskRun): Promise<TaskOutcome>
  /**
   * Lets the work go on without this server, its output into `file`; what came before is there when `flushed` resolves. False: it cannot, and
   * is stopped.
   */
  leave?(file: string, flushed: () => Promise<void>): Promise<boolean>
  /** The line of the output that has not ended. */
  unfinished?(): string
}

/** A task as it is now. */
export interface TaskView {
  readonly info: TaskInfo
  readonly agent: AgentHost
  readonly tool_call_id?: string
  /** Absolute path of all of its output; undefined when there is no file. */
  readonly output_path?: string
  /** Bytes of all of its output. */
  readonly output_size: number
  /** The end of the output, at most so many bytes of UTF-8 (at most 1 MiB is kept). */
  output(bytes: number): Promise<string>
}

/** A task that was started here. */
export interface Task {
  readonly id: string
  readonly view: TaskView
  /**
   * For the call that started it in the foreground: resolves when it is over, or in the background (`overtime`: because its time in the
   * foreground was up). The signal (of the turn) stops it as long as it is in the foreground.
   */
  foreground(signal: AbortSignal): Promise<'ended' | 'detached' | 'overtime'>
  /** Resolves when it is over and its end is on record. Never rejects. */
  readonly ended: Promise<TaskView>
}

/** Refuses a task: too many run, or the session ends. The message is for the model. */
export class TaskRefused extends Error {}

export interface Tasks {
  /**
   * Starts work as a task of the agent. In the background: on record when it resolves, and told (`task.started`). Throws TaskRefused, and what
   * the disk throws; then the work has been stopped.
   */
  start(agent: AgentHost, spec: TaskSpec): Promise<Task>
  /** Why this agent can have nothing in the background, as a sentence for the model; undefined: it can. */
  refusal(agent: AgentHost): string | undefined
  /** Its tasks, oldest first: those that run, and the last ones that are over. */
  list(agent: AgentHost): Promise<readonly TaskView[]>
  find(agent: AgentHost, id: string): Promise<TaskView | undefined>
  /** Moves a running task from the foreground to the background; on record when it resolves. False: it was not in the foreground. */
  detach(agent: AgentHost, id: string): Promise<boolean>
  /**
   * Stops a task and waits for its end. `silent`: the agent is not told of it. False: it was over, or ended by itself.
   */
  stop(agent: AgentHost, id: string, cause: StopCause, options: { readonly reason: string; readonly silent?: boolean }): Promise<boolean>
  /** The result of a call whose work is in the background now, as `key: value` lines for the model. `before`: a sentence in front. */
  backgroundResult(task: TaskView, before?: string): string
}
export const Tasks = serviceToken<Tasks>('tasks')
