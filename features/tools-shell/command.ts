/** One shell command in a process group of its own: started, read, ended with everything it started. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, existsSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { longestMs, withStreams } from '../../kernel/index.ts'
import type { Launcher } from './apart.ts'
import { commandEnv, type Hidden } from './environment.ts'
import type { OutputPipe, OutputPipes } from './pipes.ts'
import type { CommandRecord } from './record.ts'
import { endStrays, findStrays, markedShell, processIds, signalTo } from './strays.ts'

type Kind = 'stdout' | 'stderr'

interface CommandOptions {
  readonly shell: string
  /** Starts the shell; default: it is started as it is. */
  readonly launcher?: Launcher | undefined
  readonly command: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Stands in `env`, too: by it processes are found that left the group. */
  readonly mark: string
  /** Standard input; closed without one. */
  readonly input?: string
  /** Standard input stays open, for `write`. */
  readonly talks?: boolean
  /** What its output comes through; default: what `spawn` makes. */
  readonly pipes?: Pick<OutputPipes, 'take'> | undefined
  /** Called for each piece of text, in arrival order. */
  readonly onText: (kind: Kind, text: string) => void
  /** Between SIGTERM and SIGKILL, in ms. */
  readonly killGraceMs: number
  /** How long to read on after the exit while something else still holds the pipes, in ms. */
  readonly drainMs: number
}

/** What every command of this server is started with. */
export interface CommandPorts {
  readonly shell: string
  readonly launcher?: Launcher
  readonly pipes?: Pick<OutputPipes, 'ready' | 'take'>
  /** The pack ends, and with it its commands: whoever waited meanwhile starts none. */
  readonly over?: () => boolean
  /** Which variables commands do not get, by the configuration of this moment. */
  readonly hidden: () => Hidden
  readonly record: Pick<CommandRecord, 'begin' | 'started' | 'ended'>
  /** Remembers a running command for the pack's end; returns its release. */
  readonly own: (command: Command) => () => void
  readonly killGraceMs: number
  readonly drainMs: number
}

export type CommandEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'failed'; readonly error: Error }

/** Every command of this process: a forced end (second signal, uncaught error) skips all clean-up, and no command goes on without its server. */
const running = new Set<Command>()

function killAll(): void {
  for (const command of running) command.kill()
}

/** Linux takes no argument of 128 KiB; longer commands come to the shell through a pipe. */
const LONG_BYTES = 100 * 1024
/** Reads such a command from descriptor 3, which the command does not have. */
const readCommand = 'eval "$(cat <&3)" 3<&-'

/** The system says that the shell is not there when it is the directory that is not. */
function inWords(error: Error, cwd: string): Error {
  return existsSync(`${cwd}/.`) ? error : new Error(`${cwd} is no directory that can be entered`, { cause: error })
}

/** A running command; it ends with this process at the latest. */
export class Command {
  /** Resolves once: after the exit and the end of the output. Never rejects. */
  readonly ended: Promise<CommandEnd>
  /** Undefined: the system refused to start it. */
  readonly #child: ChildProcess | undefined
  #output: { readonly [kind in Kind]: Readable } | undefined
  readonly #options: CommandOptions
  /** Processes that were there before. */
  readonly #others: ReadonlySet<number>
  /** Once ended: processes of it were still running, and were killed. */
  left = false
  #over = false
  #killTimer: NodeJS.Timeout | undefined
  #killAt = 0

  constructor(options: CommandOptions) {
    this.#options = options
    this.#others = new Set(processIds())
    try {
      this.#child = this.#start()
    } catch (error) {
      this.#over = true
      this.ended = Promise.resolve({ kind: 'failed', error: error as Error })
      return
    }
    if (running.size === 0) process.on('exit', killAll)
    running.add(this)
    this.ended = this.#wait(this.#child, Promise.all([this.#read('stdout'), this.#read('stderr')]))
  }

  /** Throws where the system says no at once (too many arguments, no memory); what else fails comes as an event. */
  #start(): ChildProcess {
    const { shell, launcher = { words: [] }, command, mark, cwd, env, input, talks } = this.#options
    if ('refusal' in launcher) throw new Error(launcher.refusal)
    const long = Buffer.byteLength(command) > LONG_BYTES
    const given = input === undefined && !talks ? 'ignore' : 'pipe'
    const [program = shell, ...args] = [...launcher.words, shell, ...markedShell(shell, long ? readCommand : command, mark)]
    const out = { stdout: this.#options.pipes?.take(), stderr: this.#options.pipes?.take() }
    const stdio: StdioOptions = [given, out.stdout?.write ?? 'pipe', out.stderr?.write ?? 'pipe', ...(long ? (['pipe'] as const) : [])]
    const child = spawnInto(out, () => withStreams(spawn(program, args, { cwd, env, detached: true, stdio })))
    this.#output = { stdout: readEnd(out.stdout) ?? child.stdout!, stderr: readEnd(out.stderr) ?? child.stderr! }
    child.stdin?.on('error', () => undefined) // who does not read its input need not
    if (!talks) child.stdin?.end(input)
    const script = child.stdio[3] as Writable | null | undefined
    script?.on('error', () => undefined) // the shell was ended before it had read it
    script?.end(command)
    return child
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** To its standard input (`talks`); resolves when there is room for more, or nobody reads any more. */
  write(text: string): Promise<void> {
    const stdin = this.#child?.stdin
    if (!stdin?.writable || stdin.write(text)) return Promise.resolve()
    return new Promise(resolve => {
      const done = () => {
        stdin.off('drain', done)
        stdin.off('close', done)
        resolve()
      }
      stdin.on('drain', done)
      stdin.on('close', done)
    })
  }

  /** Ends its standard input. */
  hangUp(): void {
    this.#child?.stdin?.end()
  }

  /** SIGTERM to all of it, SIGKILL after the grace time. Does nothing once the command has ended. */
  stop(graceMs: number = this.#options.killGraceMs): void {
    if (this.#over) return
    this.#signal('SIGTERM')
    const timer = setTimeout(() => this.#signal('SIGKILL'), Math.min(graceMs, longestMs))
    timer.unref()
    clearTimeout(this.#killTimer)
    this.#killTimer = timer
    this.#killAt = Date.now() + graceMs
  }

  /** SIGKILL to all of it, now. */
  kill(): void {
    this.#signal('SIGKILL')
  }

  /**
   * Goes on without this process: what it prints from now on is added to the file, by a helper of its own (`cat`). `flushed` resolves when
   * what it printed before is there. False: it has ended, or it cannot.
   */
  async leave(file: string, flushed: () => Promise<void>): Promise<boolean> {
    const { pid } = this
    if (this.#over || pid === undefined || !this.#output || process.platform === 'win32') return false
    const streams = Object.values(this.#output)
    for (const stream of streams) stream.pause()
    await flushed()
    const out = await open(file, 'a', 0o600)
    try {
      for (const stream of streams) {
        // What came since it was paused is held in this process. Until the helper has the pipe nothing else may be read.
        stream.removeAllListeners('data')
        for (let held: Buffer | null = stream.read(); held; held = stream.read()) writeFileSync(out.fd, held)
        const env = { PATH: process.env.PATH } // it outlives this process, and no key with it
        const helper = spawn('cat', [], { stdio: [stream, out.fd, 'ignore'], detached: true, env })
        helper.on('error', () => undefined) // without it the command goes on until it prints
        helper.unref()
      }
    } finally {
      await out.close()
    }
    for (const stream of streams) stream.destroy()
    this.#child?.unref()
    this.#forget()
    return true
  }

  #forget(): void {
    this.#over = true
    running.delete(this)
    if (running.size === 0) process.off('exit', killAll)
  }

  /** Resolves when nothing more comes. */
  #read(kind: Kind): Promise<void> {
    const stream = this.#output![kind]
    const decoder = new StringDecoder('utf8')
    const pass = (text: string) => {
      if (text !== '') this.#options.onText(kind, text)
    }
    stream.on('data', (chunk: Buffer) => pass(decoder.write(chunk)))
    stream.on('error', () => undefined) // a broken pipe is the end of the output; the exit says why
    return new Promise(resolve => {
      stream.on('close', () => {
        pass(decoder.end())
        resolve()
      })
    })
  }

  async #wait(child: ChildProcess, closed: Promise<unknown>): Promise<CommandEnd> {
    const end = await new Promise<CommandEnd>(resolve => {
      child.once('error', error => resolve({ kind: 'failed', error: inWords(error, this.#options.cwd) }))
      child.once('exit', (code, signal) => {
        const result: CommandEnd = code === null ? { kind: 'signal', signal: signal ?? 'unknown' } : { kind: 'exit', code }
        // the rest of a stopped group keeps its grace time, though the shell went first
        const left = Math.max(0, this.#killAt - Date.now())
        const timer = setTimeout(() => {
          for (const stream of Object.values(this.#output ?? {})) stream.destroy()
          resolve(result)
        }, left + this.#options.drainMs)
        void closed.then(() => {
          clearTimeout(timer)
          resolve(result)
        })
      })
    })
    clearTimeout(this.#killTimer)
    if (this.#over) return end // it was left, and is nobody's business here
    this.left = await this.#endRest()
    this.#forget()
    return end
  }

  /** Whether anything was left. */
  async #endRest(): Promise<boolean> {
    const { pid } = this
    if (pid === undefined) return false
    const left = await endStrays(() => this.#strays(pid))
    signalTo(-pid, 'SIGKILL') // where there is no /proc, its group is all that is known
    return left.length > 0
  }

  #strays(session: number): number[] {
    const fresh = processIds().filter(each => !this.#others.has(each))
    return findStrays(fresh, { mark: this.#options.mark, sessions: [session] })
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this
    if (pid === undefined || this.#over) return
    signalTo(-pid, signal)
    for (const stray of this.#strays(pid)) signalTo(stray, signal)
  }
}

/** The writing ends belong to the child from then on. */
function spawnInto(pipes: { readonly [kind in Kind]: OutputPipe | undefined }, start: () => ChildProcess): ChildProcess {
  const made = Object.values(pipes).filter(pipe => pipe !== undefined)
  try {
    return start()
  } catch (error) {
    for (const { read } of made) closeSync(read)
    throw error
  } finally {
    for (const { write } of made) closeSync(write)
  }
}

const readEnd = (pipe: OutputPipe | undefined): Readable | undefined =>
  pipe && new Socket({ fd: pipe.read, readable: true, writable: false })

/** Starts a command of this server and records it. `env` is added to the environment that commands get. `release` is called when it is over or was left. */
export function startCommand(
  ports: CommandPorts,
  options: Pick<CommandOptions, 'command' | 'cwd' | 'input' | 'talks' | 'onText'> & Partial<Pick<CommandOptions, 'env' | 'killGraceMs'>>
): { readonly command: Command; release(): void } {
  const { shell, launcher, pipes, record, killGraceMs, drainMs } = ports
  const mark = record.begin()
  const env = { ...commandEnv(process.env, ports.hidden(), shell, mark), ...options.env }
  const command = new Command({ shell, launcher, pipes, killGraceMs, drainMs, ...options, env, mark })
  const disown = ports.own(command)
  if (command.pid !== undefined) void record.started(mark, command.pid)
  const release = () => {
    disown()
    record.ended(mark)
  }
  return { command, release }
}
