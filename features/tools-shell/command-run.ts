/** One run of a command for a call: its process, its output, why it was killed, and the result that the model gets. */
import { join } from 'node:path'
import type { Static } from '../../kernel/index.ts'
import type { ToolEnv, ToolResult, ToolUpdate } from '../tools/index.ts'
import { type Command, type CommandEnd, type CommandPorts, startCommand } from './command.ts'
import type { bashParameters } from './contract.ts'
import { MAX_BYTES, Output, Pieces } from './output.ts'

export type Arguments = Static<typeof bashParameters>

export interface RunPorts extends CommandPorts {
  readonly newId: () => string
  readonly events: (agent: ToolEnv['agent']) => TellShell
}

/** The events of a command (`shell.*`). */
export interface ShellEvents {
  readonly started: ShellCommand
  readonly output: ShellCommand & { readonly update: ToolUpdate }
  readonly completed: ShellCommand & { readonly isError: boolean }
}

/** Tells those of an agent's commands. */
export type TellShell = <N extends keyof ShellEvents>(name: N, event: ShellEvents[N]) => void

interface ShellCommand {
  readonly commandId: string
  readonly taskId?: string
}

/** What is to be run. */
export interface Line {
  readonly args: Arguments
  /** Absolute. */
  readonly cwd: string
  readonly env: ToolEnv
  /** Resolves when clients have heard of the call. */
  readonly told: Promise<void>
}

/** Why a command was killed. */
export type Killed = 'timeout' | 'output' | 'abort' | 'user' | 'close'

/** How it ended. */
interface RunEnd {
  readonly end: CommandEnd
  readonly killed: Killed | undefined
  /** Processes that it had left running. */
  readonly left: boolean
  readonly output: { readonly text: string; readonly logPath?: string; readonly truncated: boolean }
}

export class CommandRun {
  /** Resolves when nothing of it is left. Never rejects. */
  readonly ended: Promise<RunEnd>
  readonly command: Command
  readonly output: Output
  readonly #pieces: Pieces
  readonly #release: () => void
  /** Whoever hears of the command hears of its call first. */
  readonly #tell: TellShell
  readonly #shown: ShellCommand
  #killed: Killed | undefined
  #alone = false

  /** Starts it. `task`: it runs as one, whose `output` gets what it prints as the model would. */
  constructor(
    { args, cwd, env, told }: Line,
    ports: RunPorts,
    progress: (update: ToolUpdate) => void,
    task?: { readonly id: string; output(text: string): void }
  ) {
    this.output = new Output(join(env.agent.dir, 'tool-results', `${ports.newId()}-Bash.log`), task && (text => task.output(text)))
    const events = ports.events(env.agent)
    let known = false
    this.#tell = (name, event) => {
      if (known) return events(name, event)
      void told.then(() => {
        known = true
        events(name, event)
      })
    }
    this.#shown = { commandId: env.tool_call_id, ...(task ? { taskId: task.id } : {}) }
    this.#tell('started', this.#shown)
    this.#pieces = new Pieces(update => {
      if (!this.#alone) progress(update)
      this.#tell('output', { ...this.#shown, update })
    })
    const { command, release } = startCommand(ports, {
      command: args.command,
      cwd,
      onText: (kind, text) => {
        if (this.output.bytes > MAX_BYTES) return
        this.output.add(kind, text)
        this.#pieces.add(kind, text)
        if (this.output.bytes > MAX_BYTES) this.kill('output', 0)
      }
    })
    this.command = command
    this.#release = release
    this.ended = this.#wait()
  }

  /** Ends it, politely first. The first reason counts. */
  kill(why: Killed, graceMs?: number): void {
    if (this.#killed) return
    this.#killed = why
    this.command.stop(graceMs)
  }

  /** No call waits for it any more: its progress is nobody's, nor is the result. */
  alone(): void {
    this.#pieces.flush()
    this.#alone = true
    this.output.passOn()
  }

  /** It goes on without this server, its output into the file. False: it cannot. */
  async leave(file: string, flushed: () => Promise<void>): Promise<boolean> {
    if (!(await this.command.leave(file, flushed))) return false
    this.#release()
    return true
  }

  async #wait(): Promise<RunEnd> {
    const end = await this.command.ended
    this.#pieces.flush()
    const output = await this.output.finish()
    this.#release()
    if (!this.#alone) this.#tell('completed', { ...this.#shown, isError: verdictOf(end, this.#killed, 0) !== undefined })
    return { end, killed: this.#killed, left: this.command.left, output }
  }
}

/** The result for a call that waited. `seconds`: how long it could. */
export function resultOf({ end, killed, left, output }: RunEnd, seconds: number): ToolResult {
  const verdict = verdictOf(end, killed, seconds)
  const lines = [output.text.replace(/\n$/, '')]
  if (output.truncated) lines.push(`The output was cut in the middle.${output.logPath ? ` The whole output is in ${output.logPath}` : ''}`)
  if (left && killed === undefined) lines.push('Processes of the command were still running in the background; they were ended with it.')
  if (verdict !== undefined) lines.push(verdict)
  const text = lines.filter(line => line !== '').join('\n')
  return { output: text, ...(verdict === undefined ? {} : { is_error: true }), ...(output.truncated ? { truncated: true } : {}) }
}

/** What went wrong; undefined: nothing. */
export function verdictOf(end: CommandEnd, killed: Killed | undefined, seconds: number): string | undefined {
  if (killed === 'timeout') return `The command was killed after ${seconds} s (timeout).`
  if (killed === 'output') return 'The command was killed: it printed more than 16 MiB. Send long output to a file, or filter it.'
  if (killed === 'abort') return 'The command was killed: the call was aborted.'
  if (killed === 'user') return 'The command was killed: the user stopped it.'
  if (killed === 'close') return 'The command was killed: its session was closed.'
  if (end.kind === 'failed') return `The command could not be started: ${end.error.message}`
  if (end.kind === 'signal') return `The command was ended by ${end.signal}.`
  return end.code === 0 ? undefined : `The command failed with exit code ${end.code}.`
}
