/** The process of one pack as the server has it: started, asked whether it still answers, bounded in memory, and ended. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { headOf, PassingFailure, withStreams } from '../../../kernel/index.ts'
import { waitAtMost } from '../../../kernel/lifecycle/wait.ts'
import { FramedSocket } from '../../peers/framed.ts'
import { shownVariables } from '../own-environment.ts'
import { channels, messageBytes, pack, unpack } from './framing.ts'
import type { Limits } from './options.ts'
import { type Message, Peer, type Wire } from './peer.ts'

/** The process is over; the message says why. */
export class ProcessEnded extends PassingFailure {
  override readonly name = 'ProcessEnded'

  constructor(message: string) {
    super(message, 0)
  }
}

interface ProcessOptions extends Limits {
  /** What it calls by name, until `peer.root` is another one. */
  readonly root: object
}

type Printed = (line: string, stream: 'stdout' | 'stderr') => void
type Failed = (what: string, error: unknown) => void

const beatMs = 1_000
/** How long Node and what comes before the pack may take to start, s. */
const startS = 20
/** What may wait for a process that does not read; then it is ended. */
const waitingBytes = 64 * 1024 * 1024
/** A process that says much answers late, up to so many times the limit. */
const patience = 10
/** Calls of so many bytes are answered before more are read. */
const fullBytes = 16 * 1024 * 1024
/** How much of one pass of the event loop its messages may take, ms. */
const sliceMs = 3
/** How long a process may take to end by itself, ms. */
const lastMs = 500

const bundled = basename(fileURLToPath(new URL('.', import.meta.url))) === 'bundle'
/** Always of the bundle, which starts in a fifth of the time of the files that it is made of. */
const entry = fileURLToPath(new URL(bundled ? './isolated.js' : '../../../bundle/isolated.js', import.meta.url))

export class PackProcess {
  readonly peer: Peer
  /** Resolves, when it has ended, to why. Never rejects. */
  readonly ended: Promise<ProcessEnded>
  readonly #child: ChildProcess
  readonly #limits: Limits
  readonly #told: FramedSocket
  #memory = 0
  #heard = false
  /** Beats without an answer, and those without a word. */
  #missed = 0
  #silent = 0
  /** It has made more calls than it may before some are answered. */
  #full = false
  #settled: (bytes: number) => void = () => undefined
  #reason: string | undefined
  #lastWords = ''
  #printed: Printed = () => undefined
  #failed: Failed = () => undefined

  constructor(options: ProcessOptions) {
    const { memory_mb, root } = options
    this.#limits = options
    const heap = Math.floor((memory_mb * 3) / 4)
    this.#child = withStreams(
      spawn(process.execPath, [`--max-old-space-size=${heap}`, entry], {
        env: shownVariables(process.env),
        stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe']
      })
    )
    const of = (at: number) => this.#child.stdio[at] as Socket
    const ignore = () => undefined
    for (const at of [1, 2, ...Object.values(channels)]) of(at)?.on('error', ignore) // its end says so
    this.#told = new FramedSocket(of(channels.told), { limit: 0, take: ignore })
    const answers = new FramedSocket(of(channels.answers), { limit: 0, take: ignore })
    const wire: Wire = {
      send: (message, bytes) => this.#send(this.#told, message, bytes),
      answer: (message, bytes) => this.#send(answers, message, bytes)
    }
    this.peer = new Peer({
      wire,
      root,
      server: true,
      failed: (what, error) => this.#failed(what, error),
      settled: bytes => this.#settled(bytes)
    })
    this.#listen(of(channels.says))
    this.#print()
    this.ended = this.#end()
    const beat = setInterval(() => void this.#beat(), beatMs).unref()
    void this.ended.then(() => clearInterval(beat))
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Bytes, as told last; 0 before. */
  get memory(): number {
    return this.#memory
  }

  /** Ends it: by its own clean-up within `ms`, else by force. Resolves when it is gone. */
  async stop(ms: number): Promise<void> {
    this.#reason ??= 'it was stopped'
    await waitAtMost(Promise.race([this.peer.call(0, 'stop', []), this.ended]), ms).catch(() => undefined) // it tells what fails there
    this.#told.socket.end()
    await waitAtMost(this.ended, lastMs)
    this.#child.kill('SIGKILL')
    await this.ended
  }

  /** Whether this process stays for its sake. It ends with this process in any case. */
  hold(stays: boolean): void {
    const handles = [this.#child, ...this.#child.stdio] as ({ ref(): void; unref(): void } | null)[]
    for (const handle of handles) stays ? handle?.ref() : handle?.unref()
  }

  /** Who hears of the lines that it prints. */
  onPrinted(printed: Printed): void {
    this.#printed = printed
  }

  /** Who hears of calls that failed and have no answer. */
  onFailed(failed: Failed): void {
    this.#failed = failed
  }

  /** The reason that is told if it ends now. */
  blame(reason: string): void {
    this.#reason ??= reason
  }

  /** Ends it at once. */
  kill(reason: string): void {
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #send(way: FramedSocket, message: Message, bytes: readonly Uint8Array[]): void {
    const { kind, body } = pack(message, bytes)
    if (way.waiting > waitingBytes) this.kill(`it left more than ${waitingBytes / 1_048_576} MB unread that it was sent`)
    else way.send(kind, body)
  }

  /** A process may flood the server: reading yields to the loop in between, and stops while too many of its calls wait for their answers. */
  #listen(socket: Socket): void {
    let began = 0
    const goOn = () => {
      began = 0
      if (!this.#full) socket.resume()
    }
    this.#settled = bytes => {
      if (!this.#full || bytes > fullBytes / 2) return
      this.#full = false
      socket.resume()
    }
    new FramedSocket(socket, {
      limit: messageBytes,
      take: (kind, body) => {
        this.#silent = 0
        try {
          const { message, bytes } = unpack(kind, body)
          if (message.b !== undefined) this.#answeredBeat(message.b)
          else this.peer.receive(message, bytes, body.length)
        } catch (error) {
          this.kill(`what it said is no message: ${error instanceof Error ? error.message : String(error)}`)
        }
        if (this.peer.load > fullBytes) {
          this.#full = true
          socket.pause()
        }
        if (began === 0) {
          began = performance.now()
          setImmediate(goOn)
        } else if (performance.now() - began > sliceMs) socket.pause()
      }
    })
  }

  #answeredBeat(memory: number): void {
    this.#missed = 0
    this.#heard = true
    this.#checkMemory(memory)
  }

  async #beat(): Promise<void> {
    const limit = ((this.#heard ? this.#limits.hang_s : startS) * 1_000) / beatMs
    if (this.#silent >= limit || this.#missed >= limit * patience) {
      const seconds = (Math.max(this.#silent, this.#missed) * beatMs) / 1_000
      this.kill(`it answered nothing for ${seconds} s, with ${Math.round(this.#memory / 1_048_576)} MB of memory`)
      return
    }
    if (this.#missed > 0) this.#checkMemory(await memoryOf(this.pid)) // it may be busy getting more
    this.#missed++
    if (!this.#full) this.#silent++
    this.#send(this.#told, { b: 0 }, [])
  }

  #checkMemory(bytes: number | undefined): void {
    if (bytes === undefined) return
    this.#memory = bytes
    const { memory_mb } = this.#limits
    if (bytes > memory_mb * 1_048_576) this.kill(`it took ${Math.round(bytes / 1_048_576)} MB of memory, its limit is ${memory_mb} MB`)
  }

  /** Lines, cut where they are too long; what is printed beyond so many in a second is not even looked at. */
  #print(): void {
    for (const name of ['stdout', 'stderr'] as const) {
      let rest = ''
      let second = 0
      let lines = 0
      this.#child[name]?.setEncoding('utf8').on('data', (text: string) => {
        if (name === 'stderr') this.#lastWords = (this.#lastWords + text).slice(-4_096)
        const now = Math.floor(performance.now() / 1000)
        if (now !== second) lines = 0
        second = now
        if (lines > linesPerSecond) return
        const said = (rest + text).split('\n')
        rest = (said.pop() ?? '').slice(0, lineChars)
        for (const line of said) {
          if (line === '') continue
          if (++lines > linesPerSecond) {
            rest = ''
            this.#printed(`it prints more than ${linesPerSecond} lines in a second: what is more is left out`, name)
            return
          }
          this.#printed(headOf(line, lineChars), name)
        }
      })
    }
  }

  #end(): Promise<ProcessEnded> {
    return new Promise(resolve => {
      const over = (text: string) => {
        const error = new ProcessEnded(text)
        this.peer.end(error)
        for (const stream of this.#child.stdio) stream?.destroy()
        resolve(error)
      }
      this.#child.once('error', error => over(`its process could not be started: ${error.message}`))
      this.#child.once('exit', (code, signal) => {
        // What it said last is read first; what it started may keep its outputs open.
        const said = this.#child.stdio[channels.says] as Socket
        const limit = setTimeout(() => said.destroy(), lastMs)
        const told = () => {
          clearTimeout(limit)
          over(`its process ended: ${this.#why(code, signal)}`)
        }
        if (said.destroyed) told()
        else said.once('close', told)
      })
    })
  }

  #why(code: number | null, signal: NodeJS.Signals | null): string {
    if (this.#reason !== undefined) return this.#reason
    if (/heap out of memory|Allocation failed/.test(this.#lastWords)) return `out of memory, its limit is ${this.#limits.memory_mb} MB`
    return signal === null ? `exit code ${code}` : `signal ${signal}`
  }
}

const lineChars = 4_096
const linesPerSecond = 500

/** Bytes; undefined where the system does not tell. What it tells in pages says nothing without their size, which differs between machines. */
async function memoryOf(pid: number | undefined): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '') // it has ended, or the system has no such files
  const kib = /^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1]
  return kib === undefined ? undefined : Number(kib) * 1_024
}
