/** One terminal: a shell on a pseudo terminal, what it printed last, and who watches. */
import type { IPty } from 'node-pty'
import { AppError, type Connection } from '../../kernel/index.ts'
import { RuntimeUnavailable } from '../sessions/index.ts'
import { signalSession } from '../tools-shell/index.ts'
import type { TerminalObject } from './contract.ts'
import { descriptorOf, isFile } from './descriptor.ts'
import { InputWriter } from './input.ts'
import { environmentOf } from './place.ts'
import { OutputReader } from './reader.ts'
import { Scrollback } from './scrollback.ts'
import { Watchers } from './watchers.ts'

/** Frames that are kept, besides their bound in characters. */
const keptFrames = 2000
/** Between SIGHUP and SIGKILL at the end. */
const graceMs = 500

export interface TerminalOptions {
  readonly id: string
  readonly session_id: string
  readonly cwd: string
  readonly shell: string
  readonly cols: number
  readonly rows: number
  readonly scrollback: number
  readonly now: () => Date
  /** It has ended. */
  readonly over: () => void
}

/** What starts shells. It, and a start, throw RuntimeUnavailable (40926) where the optional package, or a pseudo terminal, is missing. */
export async function terminalStarter(): Promise<(options: TerminalOptions) => Terminal> {
  const { spawn } = await import('node-pty').catch((cause: unknown) => {
    throw new AppError(RuntimeUnavailable, { message: 'no terminals here: the optional package node-pty could not be loaded', cause })
  })
  return options => {
    const { shell, cwd, cols, rows } = options
    const forked = () => {
      try {
        return spawn(shell, [], { name: 'xterm-256color', cwd, cols, rows, env: environmentOf(process.env) })
      } catch (cause) {
        throw new AppError(RuntimeUnavailable, { message: 'the system gives no pseudo terminal, or no process for it', cause })
      }
    }
    return new Terminal(forked(), options)
  }
}

/** A shell, and what reads from it and writes to it. */
interface Shell {
  readonly pty: IPty
  readonly reader: OutputReader
  readonly input: InputWriter
}

export class Terminal {
  /** Until the shell was collected: its id may be that of another process then, and nothing of it stays in memory. */
  #live: Shell | undefined
  readonly #pid: number
  readonly #options: TerminalOptions
  readonly #scrollback: Scrollback
  readonly #watchers: Watchers
  readonly #created: string
  #cols: number
  #rows: number
  #ended: { readonly at: string; readonly code: number | null } | undefined
  #killer: NodeJS.Timeout | undefined
  readonly ended: Promise<void>

  constructor(pty: IPty, options: TerminalOptions) {
    this.#pid = pty.pid
    this.#options = options
    this.#cols = options.cols
    this.#rows = options.rows
    this.#created = options.now().toISOString()
    this.#scrollback = new Scrollback(keptFrames, options.scrollback)
    // Nothing is read from the shell while nobody who watches can take it: so it waits, and no output is lost.
    this.#watchers = new Watchers(options, this.#scrollback, held => this.#hold(held))
    this.#live = { pty, reader: new OutputReader(pty, text => this.#print(text)), input: new InputWriter(pty) }
    this.ended = new Promise(resolve => this.#whenCollected(resolve))
  }

  // What stays behind an end is made without naming the shell here: functions of one scope keep what any of them names.
  #hold(held: boolean): void {
    if (this.running) this.#live?.pty[held ? 'pause' : 'resume']()
  }

  #whenCollected(tell: () => void): void {
    this.#live?.pty.onExit(({ exitCode, signal }) => {
      this.#end(signal ? null : exitCode)
      this.#live = undefined
      tell()
    })
  }

  get running(): boolean {
    return this.#ended === undefined
  }

  object(): TerminalObject {
    const { id, session_id, cwd, shell } = this.#options
    const end = this.#ended
    return {
      id,
      session_id,
      cwd,
      shell,
      cols: this.#cols,
      rows: this.#rows,
      status: end ? 'exited' : 'running',
      created_at: this.#created,
      ...(end ? { exited_at: end.at, exit_code: end.code } : {})
    }
  }

  /** False: its program does not take what was typed before, and nothing of this is taken. */
  write(data: string): boolean {
    return this.#live?.input.write(data) ?? true
  }

  resize(cols: number, rows: number): void {
    const pty = this.running ? this.#live?.pty : undefined
    if (pty && (!isFile(pty) || descriptorOf(pty) !== undefined)) pty.resize(cols, rows)
    this.#cols = cols
    this.#rows = rows
  }

  /** Sends what is kept behind `since`, then everything that comes; how many frames were sent. */
  attach(connection: Connection, since: number): number {
    this.detach(connection)
    this.#live?.reader.flush()
    return this.#watchers.attach(connection, since)
  }

  detach(connection: Connection): void {
    this.#watchers.detach(connection)
  }

  /** Lets go of what it printed. */
  forget(): void {
    this.#scrollback.clear()
  }

  /** Ends the shell and everything that it started; clients are told at once. */
  kill(): void {
    if (this.#killer || !this.running) return
    this.#signal('SIGHUP')
    this.#killer = setTimeout(() => this.#signal('SIGKILL'), graceMs)
    this.#end(null)
  }

  /** As `kill`, at once; resolves when the shell is gone. */
  async close(): Promise<void> {
    this.kill()
    clearTimeout(this.#killer)
    this.#signal('SIGKILL')
    await this.ended
  }

  /** Everything that was started here, and the shell: one that was started this moment does not lead its session yet. */
  #signal(signal: NodeJS.Signals): void {
    this.#live?.pty.kill(process.platform === 'win32' ? undefined : signal)
    signalSession(this.#pid, signal)
  }

  #print(text: string): void {
    this.#watchers.print(this.#scrollback.add(text, this.#options.now().toISOString()))
  }

  #end(code: number | null): void {
    if (this.#ended) return
    this.#live?.reader.end()
    this.#live?.input.end()
    this.#ended = { at: this.#options.now().toISOString(), code }
    this.#watchers.end(this.#ended)
    this.#options.over()
  }
}
