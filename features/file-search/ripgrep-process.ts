/** One run of the ripgrep program. */
import { type ChildProcess, spawn } from 'node:child_process'
import { StringDecoder } from 'node:string_decoder'
import { AppError, InternalError, withStreams } from '../../kernel/index.ts'
import { type Partial, SEARCH_BYTES, SEARCH_MS } from './engine.ts'
import { runBehind } from './priority.ts'

export interface Run {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly signal: AbortSignal
  /** False ends the run. */
  readonly onText: (text: string) => boolean
  /** How its output is read; default utf8. */
  readonly encoding?: 'utf8' | 'latin1'
  /** Files that it gets open, from its descriptor 3 on. */
  readonly files?: readonly number[]
  /** Bytes that it may print; default 10 MiB. */
  readonly most_bytes?: number
  /** Default 20 s. */
  readonly most_ms?: number
}

export interface End {
  readonly code: number | null
  readonly stderr: string
  readonly partial?: Partial
}

/** The program needs no more; what it gets, commands of the agent could read in /proc. */
const searchEnv = Object.fromEntries(
  ['PATH', 'LD_LIBRARY_PATH', 'SystemRoot'].flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
)

/** It is neither the pattern nor the files: nobody is told that nothing was found. */
export const searchFailed = (why: string, cause?: unknown) => new AppError(InternalError, { message: `the search failed: ${why}`, cause })
const notStarted = (cause: unknown) => searchFailed(`its program cannot be started (${(cause as NodeJS.ErrnoException).code})`, cause)

/** Not every refusal of the system comes as an event. */
function started<T extends ChildProcess>(spawned: () => T): T {
  try {
    return withStreams(spawned())
  } catch (error) {
    throw notStarted(error)
  }
}

/** Runs the program until it ends, `onText` returns false, or a limit is reached. Rejects with the abort's reason. */
export function run({ program, args, cwd, signal, onText, ...more }: Run): Promise<End> {
  const { encoding = 'utf8', files = [], most_bytes = SEARCH_BYTES, most_ms = SEARCH_MS } = more
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const child = started(() =>
      spawn(program, args, { cwd, env: searchEnv, stdio: ['ignore', 'pipe', 'pipe', ...files], windowsHide: true })
    )
    runBehind(child)
    const decoder = new StringDecoder(encoding)
    let bytes = 0
    let stderr = ''
    let partial: Partial | undefined
    let failure: unknown
    const stop = () => child.kill('SIGKILL')
    const timer = setTimeout(() => {
      partial ??= 'time'
      stop()
    }, most_ms)
    signal.addEventListener('abort', stop, { once: true })
    child.stdout!.on('data', (chunk: Buffer) => {
      if (partial || failure) return
      bytes += chunk.length
      try {
        if (onText(decoder.write(chunk)) && bytes <= most_bytes) return
        partial = 'size'
      } catch (error) {
        failure = error
      }
      stop()
    })
    child.stderr!.on('data', (chunk: Buffer) => {
      if (stderr.length < 4_000) stderr += chunk.toString('utf8')
    })
    const over = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
    child.once('error', error => {
      over()
      reject(notStarted(error))
    })
    child.once('close', (code, killed) => {
      over()
      if (signal.aborted) reject(signal.reason)
      else if (failure) reject(failure)
      else if (killed !== null && partial === undefined) reject(searchFailed(`the system ended its program (${killed})`))
      else resolve({ code, stderr, ...(partial ? { partial } : {}) })
    })
  })
}
