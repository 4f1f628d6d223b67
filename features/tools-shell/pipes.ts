/**
 * Pipes for the output of commands (Linux). What `spawn` makes are sockets, which the system does not open by a name: a command that writes to
 * `/dev/stderr` or `/dev/stdout` fails there, though it works in every terminal.
 */
import { execFile } from 'node:child_process'
import { closeSync, constants, open as openLater } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { promisify } from 'node:util'

/** Descriptors of its two ends. */
export interface OutputPipe {
  readonly read: number
  readonly write: number
}

/** Made ahead and together: Node has no call for it, so that a program has to run. */
const batch = 16
/** With fewer than these left, more are made. */
const fewest = 8
/** Standard output and standard error. */
const perCommand = 2
const makingMs = 5000

export class OutputPipes {
  readonly #dir: string
  readonly #ready: OutputPipe[] = []
  #making: Promise<void> | undefined
  #closed = false

  /** `dir`: a directory that is there while they are made. */
  constructor(dir: string) {
    this.#dir = dir
  }

  /** Before a command is started: the first one waits until some are made, because a start of the server makes none. */
  async ready(): Promise<void> {
    if (this.#ready.length < perCommand) await this.#refill()
  }

  /** Whoever takes one closes its ends. Undefined where none is there: sockets do for nearly all commands. */
  take(): OutputPipe | undefined {
    const pipe = this.#ready.pop()
    void this.#refill()
    return pipe
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#making
    for (const { read, write } of this.#ready.splice(0)) for (const end of [read, write]) closeSync(end)
  }

  async #refill(): Promise<void> {
    if (this.#closed || process.platform !== 'linux' || this.#ready.length >= fewest) return
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    await this.#making
  }

  /** They have names only until they are open. */
  async #make(): Promise<void> {
    const paths = Array.from({ length: batch }, (_, at) => `${this.#dir}/${at}`)
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 })
      await promisify(execFile)('mkfifo', ['-m', '600', ...paths], { timeout: makingMs, env: { PATH: process.env.PATH } })
      await Promise.allSettled(paths.map(async path => this.#ready.push(await opened(path))))
    } catch {
      // no such program, a place without pipes, no descriptors left
    } finally {
      await rm(this.#dir, { recursive: true, force: true }).catch(() => undefined) // the next start tries again
    }
  }
}

const open = promisify(openLater)

async function opened(path: string): Promise<OutputPipe> {
  const read = await open(path, constants.O_RDONLY | constants.O_NONBLOCK) // else it waits for somebody who writes
  try {
    return { read, write: await open(path, constants.O_WRONLY) }
  } catch (error) {
    closeSync(read)
    throw error
  }
}
