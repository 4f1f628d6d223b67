/** Kernel lifecycle hooks (tapable) and owned taps: a tap leaves with the pack that made it. */
import { AsyncSeriesBailHook, AsyncSeriesHook, SyncHook } from 'tapable'
import type { Logger } from '../log/log.ts'
import type { EmittedEvent } from '../realtime/types.ts'

/** Hooks of one kernel. Made per kernel instance, never at module level. */
export function createKernelHooks() {
  return {
    /**
     * Bail. A client wants the events of a session: load or attach it. First answer wins; undefined means "not mine".
     * Nobody answers: the session counts as missing.
     */
    attachStream: new AsyncSeriesBailHook<[session_id: string], 'live' | 'missing'>(['session_id']),
    /** Notify. A client went live on a session after a cursor. Volatile events between the two are lost to it. */
    subscribed: new SyncHook<[session_id: string]>(['session_id']),
    /** Notify, in order. The server listens. */
    started: new AsyncSeriesHook<[]>([]),
    /** Notify, in order. Sockets are closed; running work must settle now. */
    stopping: new AsyncSeriesHook<[]>([]),
    /** Notify. A pack changed its state. */
    packState: new SyncHook<[name: string, state: string]>(['name', 'state']),
    /** Notify. An event was emitted (not yet on disk). */
    event: new SyncHook<[event: EmittedEvent]>(['event'])
  }
}

export type KernelHooks = ReturnType<typeof createKernelHooks>

export interface TapOptions {
  readonly name?: string
  /** Lower stages run first; default 0. */
  readonly stage?: number
}

interface AnyHook {
  readonly taps: { name: string; fn: (...args: never[]) => unknown }[]
  tap(options: { name: string; stage?: number }, fn: (...args: never[]) => unknown): void
}
interface AnyAsyncHook extends AnyHook {
  tapPromise(options: { name: string; stage?: number }, fn: (...args: never[]) => Promise<unknown>): void
}

const dead = new WeakSet<(...args: never[]) => unknown>()

/**
 * Adds a tap and returns its undo. tapable has no untap: the tap turns into a no-op (undefined means "no opinion" in every
 * hook kind) and is swept from `hook.taps` at once and at the next registration. Taps of notify hooks are caught and logged one by one.
 */
export function ownedTap(
  hook: AnyHook,
  fn: (...args: never[]) => unknown,
  options: TapOptions & { name: string },
  log: Logger
): () => void {
  sweep(hook)
  const kind = hook.constructor.name
  const isAsync = kind.startsWith('Async')
  const notify = kind === 'SyncHook' || kind === 'AsyncSeriesHook' || kind === 'AsyncParallelHook'
  let live = true
  const report = (error: unknown) => log.error({ err: error, tap: options.name }, 'a tap failed')
  const run = (...args: never[]): unknown => {
    if (!live) return undefined
    if (!notify) return fn(...args)
    try {
      const result = fn(...args)
      return result instanceof Promise ? result.catch(report) : undefined
    } catch (error) {
      report(error)
      return undefined
    }
  }
  const tapOptions = options.stage === undefined ? { name: options.name } : { name: options.name, stage: options.stage }
  const wrapped = isAsync ? async (...args: never[]) => await run(...args) : run
  if (isAsync) (hook as AnyAsyncHook).tapPromise(tapOptions, wrapped as (...args: never[]) => Promise<unknown>)
  else hook.tap(tapOptions, wrapped)
  return () => {
    live = false
    dead.add(wrapped)
    sweep(hook)
  }
}

function sweep(hook: AnyHook): void {
  const kept = hook.taps.filter(tap => !dead.has(tap.fn))
  if (kept.length === hook.taps.length) return
  hook.taps.splice(0, hook.taps.length, ...kept)
  ;(hook as unknown as { _resetCompilation?: () => void })._resetCompilation?.() // tapable compiles its call; a changed list needs a new one
}
