/**
 * What ends with a pack: whatever it has opened, registered with its undo, in reverse order; work in flight, which unloading waits for; timers and
 * child processes that it starts, whose faults are its own.
 */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { constants } from 'node:os'
import { type AppError, developerError } from '../errors.ts'
import type { Guard } from './guard.ts'
import { isPromise, late, longestMs, waitAtMost } from './wait.ts'

/** A signal that is made when somebody asks for it: most are never asked for. */
export class LazySignal {
  #controller: AbortController | undefined
  #why: (() => unknown) | undefined

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      setMaxListeners(0, this.#controller.signal) // as many as there is work
      if (this.#why) this.#controller.abort(this.#why())
    }
    return this.#controller.signal
  }

  /** `why` makes the reason, when somebody has asked or asks later. */
  abort(why: () => unknown): void {
    this.#why ??= why
    this.#controller?.abort(this.#why())
  }
}

export type Dispose = () => unknown

/** What an undo is given when the others before it have used up the time of the whole list, ms. */
const leastMs = 100

const ownerClosed = (): unknown => developerError('owner_closed')

/**
 * A disposal list. `own` registers an undo and returns a function that runs it early (once).
 * `close` runs the remaining undos serially in reverse order, goes on after a failure, and resolves to the errors it met.
 */
export class Scope {
  readonly #refusal: () => unknown
  readonly #undos = new Set<Dispose>()
  #closing: Promise<unknown[]> | undefined
  #ended = false
  readonly #closes = new LazySignal()

  /** `refusal`: what whoever comes too late is told. Default: the owner is closed. */
  constructor(refusal = ownerClosed) {
    this.#refusal = refusal
  }

  /** Aborts as soon as `close` begins. */
  get signal(): AbortSignal {
    return this.#closes.signal
  }

  /** `close` was called: nothing more can be owned. */
  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Everything was undone. */
  get ended(): boolean {
    return this.#ended
  }

  /** Number of undos that have not run yet. */
  get size(): number {
    return this.#undos.size
  }

  /** Registers an undo. On a closed scope the undo runs at once and the call throws: nothing may outlive its owner. */
  own(dispose: Dispose): () => Promise<void> {
    if (this.#closing) {
      void Promise.resolve()
        .then(dispose)
        .catch(() => undefined) // the throw below already tells the caller that the owner is gone
      throw this.#refusal()
    }
    let done = false
    let answer: unknown
    const once = () => {
      if (!done) {
        done = true
        answer = dispose()
      }
      return answer
    }
    this.#undos.add(once)
    return async () => {
      this.#undos.delete(once)
      await once()
    }
  }

  /** The same for what nobody waits for. */
  ownUndo(dispose: Dispose): () => void {
    const undo = this.own(dispose)
    return () => void undo()
  }

  /**
   * Closes once; later calls return the first result. An undo that is not through after `limitMs` (all together) is given up, and the
   * next one runs. `why`: makes the reason of the signal, when somebody has asked for that; default: what whoever comes too
   * late is told.
   */
  close(why = this.#refusal, limitMs = Number.POSITIVE_INFINITY): Promise<unknown[]> {
    this.#closing ??= this.#run(why, limitMs)
    return this.#closing
  }

  async #run(why: () => unknown, limitMs: number): Promise<unknown[]> {
    this.#closes.abort(why)
    const errors: unknown[] = []
    const end = performance.now() + limitMs
    for (const undo of [...this.#undos].reverse()) {
      this.#undos.delete(undo)
      try {
        const answer = undo()
        if (!isPromise(answer)) continue
        const ms = Math.max(leastMs, end - performance.now())
        if ((await waitAtMost(Promise.resolve(answer), ms)) === late) errors.push(developerError('callback_late', limitMs))
      } catch (error) {
        errors.push(error)
      }
    }
    this.#ended = true
    return errors
  }
}

/** How long work may still go on after its signal was aborted, ms. */
const lastWordMs = 250

export interface Work {
  /** Aborts when the pack unloads and its grace time is over. */
  readonly signal: AbortSignal
  /** Aborts a moment later: nobody waits any more. */
  readonly over: AbortSignal
  /** Ends the work; later calls do nothing. */
  leave(): void
}

/** The work in flight of one pack generation. */
export class Activity {
  readonly #works = new Set<Work>()
  #whenIdle: (() => void) | undefined
  /** It takes no more. */
  closed = false
  #absence: (() => AppError | undefined) | undefined
  readonly #abort = new LazySignal()
  readonly #over = new LazySignal()

  get running(): number {
    return this.#works.size
  }

  /** What is answered in place of work that is not taken: the pack is away for a while. Undefined: as if there were no such pack. */
  get absence(): AppError | undefined {
    return this.#absence?.()
  }

  /** Begins a piece of work; undefined when the pack takes no more. */
  enter(): Work | undefined {
    if (this.closed) return undefined
    const work: Work = {
      signal: this.#abort.signal,
      over: this.#over.signal,
      leave: () => {
        if (this.#works.delete(work) && this.running === 0) this.#whenIdle?.()
      }
    }
    this.#works.add(work)
    return work
  }

  /** Takes no new work, waits `graceMs` for the running work, then aborts its signal. Resolves to the count that was aborted. */
  async drain(graceMs: number, absence?: () => AppError | undefined): Promise<number> {
    this.closed = true
    this.#absence = absence
    const idle = new Promise<void>(resolve => {
      this.#whenIdle = resolve
    })
    if (this.running > 0) await waitAtMost(idle, graceMs)
    const left = this.running
    this.#abort.abort(() => developerError('pack_leaving'))
    if (left === 0) return 0
    const last = setTimeout(() => this.#over.abort(() => developerError('handler_deaf')), lastWordMs)
    this.#whenIdle = () => clearTimeout(last)
    return left
  }
}

interface Starter {
  readonly pack: string
  readonly guard: Guard
  readonly scope: Scope
}

/** See `PackContext.timer`. */
export function startTimer({ pack, guard, scope }: Starter, ms: number, work: () => unknown): () => void {
  if (!(ms >= 1 && ms <= longestMs)) throw new RangeError(`a timer takes 1 to ${longestMs} ms, not ${ms}`)
  let timer: NodeJS.Timeout
  let running: Promise<unknown> | undefined
  let over = false
  const drop = scope.ownUndo(() => {
    over = true
    clearTimeout(timer)
    return running
  })
  const run = async () => {
    await guard
      .run(pack, 'timer', async () => await work())
      .catch((error: unknown) => {
        if (!scope.signal.aborted) guard.report(pack, 'timer', error)
      })
    if (!over) arm()
  }
  const arm = () => {
    timer = setTimeout(() => {
      running = run()
    }, ms).unref()
  }
  arm()
  return drop
}

/** Children of all packs: a forced end of the server skips every clean-up, and none goes on without it. */
const children = new Set<ChildProcess>()

const killAll = () => {
  for (const child of children) signalGroup(child, 'SIGKILL')
}

/**
 * A child that `spawn` has just answered. Throws where no descriptors were left: Node's child has no streams then and tells why a moment later,
 * which ends the process when whoever reached for a stream has failed before listening.
 */
export function withStreams<T extends ChildProcess>(child: T): T {
  if ((child.stdio as unknown) !== undefined) return child
  child.on('error', () => undefined) // told here
  const syscall = `spawn ${child.spawnfile}`
  throw Object.assign(new Error(`${syscall} EMFILE`), { code: 'EMFILE', errno: -constants.errno.EMFILE, syscall })
}

/** See `PackContext.spawn`; SIGKILL comes `graceMs` after SIGTERM. */
export function startChild(
  { pack, guard, scope }: Starter,
  command: string,
  args: readonly string[],
  options: SpawnOptions,
  graceMs: number
): ChildProcess {
  // Loaded with the first child of a pack: a server whose packs have none goes without.
  const { spawn } = process.getBuiltinModule('node:child_process')
  const child = withStreams(spawn(command, args, { ...options, detached: process.platform !== 'win32' }))
  let timer: NodeJS.Timeout | undefined
  const ended = new Promise<void>(resolve => {
    child.once('exit', () => {
      clearTimeout(timer)
      signalGroup(child, 'SIGKILL')
      forget()
      resolve()
    })
    child.once('error', error => {
      if (child.listenerCount('error') === 0) guard.report(pack, `child process ${command}`, error)
      if (child.pid !== undefined) return
      forget()
      resolve()
    })
  })
  if (children.size === 0) process.on('exit', killAll)
  children.add(child)
  child.stdin?.on('error', () => undefined) // a program need not read what it is sent; its exit says how it went
  const forget = () => {
    children.delete(child)
    if (children.size === 0) process.off('exit', killAll)
    drop()
  }
  const drop = scope.ownUndo(() => {
    if (!children.has(child)) return undefined
    signalGroup(child, 'SIGTERM')
    timer = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs).unref()
    return ended
  })
  return child
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch {
    // Nobody is left in the group.
  }
}
