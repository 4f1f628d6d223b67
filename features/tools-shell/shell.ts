/** Commands of other packs (hooks of the user): run as those of Bash are, in a process group of their own that never outlives the server. */
import { headOf, serviceToken, shellWord } from '../../kernel/index.ts'
import { type CommandEnd, type CommandPorts, startCommand } from './command.ts'

export interface ShellRun {
  readonly command: string
  /** Absolute. */
  readonly cwd: string
  /** Added to the environment that commands get. */
  readonly env?: Readonly<Record<string, string>>
  /** Standard input; default closed. */
  readonly input?: string
  readonly timeout_ms: number
  /** Between SIGTERM and SIGKILL, ms. Default: that of Bash. */
  readonly kill_grace_ms?: number
  /** Ends the command early. */
  readonly signal?: AbortSignal
}

export interface ShellResult {
  /** Undefined: it did not exit by itself (time-out, signal, could not be started). */
  readonly code: number | undefined
  /** First MiB of each. */
  readonly stdout: string
  readonly stderr: string
  /** Why there is no code, for people. */
  readonly trouble?: string
}

/** A program that runs on and is talked to. */
export interface ProgramRun {
  /** Looked up in PATH, or a path; its arguments as they are, no shell reads them. */
  readonly program: string
  readonly args: readonly string[]
  /** Absolute. */
  readonly cwd: string
  /** Added to the environment that commands get. */
  readonly env?: Readonly<Record<string, string>>
  /** Called for each piece of its output, in arrival order. */
  readonly onText: (kind: 'stdout' | 'stderr', text: string) => void
}

export interface Program {
  readonly pid: number | undefined
  /** To its standard input; resolves when there is room for more. */
  write(text: string): Promise<void>
  /** Ends its input, waits `grace_ms`, then ends it with all that it started. Resolves when nothing is left. */
  stop(grace_ms: number): Promise<void>
  /** Resolves with why, for people; never rejects. */
  readonly ended: Promise<string>
}

export interface Shell {
  /** Never rejects. */
  run(run: ShellRun): Promise<ShellResult>
  /** Starts a program that lives until it ends or is stopped, never longer than the server. */
  start(run: ProgramRun): Program
  /** A variable of the environment that commands get; undefined: there is none, or it is hidden from them. */
  variable(name: string): string | undefined
}

/** Of the pack tools-shell. */
export const Shell = serviceToken<Shell>('shell')

/** Characters kept of each stream. */
const MAX_CHARS = 1024 * 1024

export function createShell(ports: CommandPorts): Shell {
  return {
    async run({ command: line, cwd, env = {}, input, timeout_ms, kill_grace_ms, signal }) {
      const text = { stdout: '', stderr: '' }
      await ports.pipes?.ready()
      if (signal?.aborted || ports.over?.()) return { code: undefined, ...text, trouble: 'it was aborted' }
      const { command, release } = startCommand(ports, {
        command: line,
        cwd,
        env,
        ...(input === undefined ? {} : { input }),
        onText(kind, piece) {
          text[kind] += headOf(piece, MAX_CHARS - text[kind].length)
        },
        ...(kill_grace_ms === undefined ? {} : { killGraceMs: kill_grace_ms })
      })
      let trouble: string | undefined
      const stop = (why: string) => {
        trouble ??= why
        command.stop()
      }
      const onAbort = () => stop('it was aborted')
      const timer = setTimeout(stop, timeout_ms, `it took longer than ${timeout_ms / 1000} s`)
      signal?.addEventListener('abort', onAbort, { once: true })
      try {
        const end = await command.ended
        const code = end.kind === 'exit' && trouble === undefined ? end.code : undefined
        return { code, ...text, ...(code === undefined ? { trouble: trouble ?? troubleOf(end) } : {}) }
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        release()
      }
    },
    variable(name) {
      const value = process.env[name]
      return value === undefined || ports.hidden()(name, value) ? undefined : value
    },
    start({ program, args, cwd, env = {}, onText }) {
      const line = `exec ${[program, ...args].map(shellWord).join(' ')}`
      const { command, release } = startCommand(ports, { command: line, cwd, env, talks: true, onText })
      const ended = command.ended.then(end => {
        release()
        return troubleOf(end)
      })
      return {
        pid: command.pid,
        ended,
        write: text => command.write(text),
        async stop(grace_ms) {
          command.hangUp()
          const timer = setTimeout(() => command.stop(grace_ms), grace_ms)
          await ended
          clearTimeout(timer)
        }
      }
    }
  }
}

function troubleOf(end: CommandEnd): string {
  if (end.kind === 'failed') return `it could not be started: ${end.error.message}`
  return end.kind === 'signal' ? `it was ended by ${end.signal}` : `it exited with ${end.code}`
}
