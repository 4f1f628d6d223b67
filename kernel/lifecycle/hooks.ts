/** Kernel lifecycle hooks (tapable), the face of them that packs see, and owned taps: a tap leaves with the pack that made it. */
import { AsyncSeriesBailHook, AsyncSeriesHook, SyncHook } from 'tapable'
import type { AnyRoute, RequestInfo } from '../contract.ts'
import { AppError } from '../errors.ts'
import type { Connection, EmittedEvent } from '../realtime/types.ts'
import { type Guard, inTime } from './guard.ts'

/** How a request was answered. */
export interface RequestOutcome {
  /** Undefined: no route was found, or the request did not get as far. */
  readonly route: AnyRoute | undefined
  /** HTTP status. */
  readonly status: number
  /** Code of the envelope; undefined for byte replies. */
  readonly code: number | undefined
  readonly duration_ms: number
}

/** Hooks of one kernel. Made per kernel instance, never at module level. */
export function createKernelHooks() {
  return {
    /**
     * Bail. A client wants the events of a session: load or attach it. First answer wins; undefined means "not mine".
     * Nobody answers: the session counts as missing. A tap that fails or takes longer than
     * `frameTimeoutMs` makes it missing, too; one whose pack is away and comes back refuses with `PackAway`.
     */
    attachStream: guardHook(new AsyncSeriesBailHook<[session_id: string], 'live' | 'missing'>(['session_id'])),
    /**
     * Bail. A request does not say which session it is about, and other servers of the home may have it: a tap of the pack of its route
     * answers the id; undefined: about none. A tap that fails or takes longer than `frameTimeoutMs` fails the request.
     */
    about: new AsyncSeriesBailHook<[route: AnyRoute], string>(['route']),
    /**
     * Notify. A client went live on a session after a cursor. Volatile events between the two are lost to it unless it was live before
     * (`wasLive`), also for everything that it is shown now; what it has to know of them can be emitted to it `only`.
     */
    subscribed: new SyncHook<[session_id: string, connection: Connection, wasLive: boolean]>(['session_id', 'connection', 'wasLive']),
    /** Notify. A client asked to be sent nothing more of a session. */
    unsubscribed: new SyncHook<[session_id: string, connection: Connection]>(['session_id', 'connection']),
    /**
     * Notify, in order. The server listens; taps of a pack that comes later are called as soon as it is active. A tap is given up after
     * `setupTimeoutMs`.
     */
    started: new AsyncSeriesHook<[]>([]),
    /** Notify. The server is about to end listening, which waits for requests: those that wait for people or other servers are answered now. */
    closing: new SyncHook<[]>([]),
    /** Notify, in order. Sockets are closed; running work must settle now. A tap is given up after `setupTimeoutMs`. */
    stopping: new AsyncSeriesHook<[]>([]),
    /** Notify. A pack changed its state. */
    packState: new SyncHook<[name: string, state: string]>(['name', 'state']),
    /**
     * Bail. A request found its route, its principal may use it, and nothing of it has been read. A tap that answers `{ data }` answers
     * instead of the handler, one that throws an AppError refuses the request; undefined lets it go on. A tap that fails otherwise, or
     * takes longer than `frameTimeoutMs`, fails the request.
     */
    beforeRequest: new AsyncSeriesBailHook<[request: RequestInfo, route: AnyRoute], { readonly data: unknown }>(['request', 'route']),
    /** Notify. A request was answered, also one that found no route. */
    afterRequest: new SyncHook<[request: RequestInfo, outcome: RequestOutcome]>(['request', 'outcome']),
    /** Notify. An event was emitted (not yet on disk). */
    event: new SyncHook<[event: EmittedEvent]>(['event'])
  }
}

export type KernelHooks = ReturnType<typeof createKernelHooks>

/** What a function tapped into a hook looks like. Taps of asynchronous hooks answer at once or with a promise; undefined: no opinion. */
export type TapFn<H> =
  H extends TapPoint<infer F>
    ? F
    : // biome-ignore lint/suspicious/noExplicitAny: argument types are inferred from tapable's own declaration
      H extends { tapPromise(options: any, fn: infer F): void }
      ? F extends (...args: infer A) => Promise<infer R>
        ? (...args: A) => R | undefined | Promise<R | undefined>
        : never
      : // biome-ignore lint/suspicious/noExplicitAny: as above
        H extends { tap(options: any, fn: infer F): void }
        ? F
        : never

/** A hook of the kernel as packs see it: they can tap it (`ctx.tap`) and nothing else. */
export interface TapPoint<F> {
  readonly kind: 'hook'
  readonly name: string
  /** Never set; carries the type of a tap. */
  readonly type?: F
}

export type TapPoints = { readonly [K in keyof KernelHooks]: TapPoint<TapFn<KernelHooks[K]>> }

/** What `ctx.tap` takes: a hook of the kernel, or a tapable hook that another pack publishes. */
// biome-ignore lint/suspicious/noExplicitAny: tapable's hook classes differ only in type parameters that do not matter here
export type Tappable = TapPoint<any> | { tap(options: any, fn: any): void }

export interface TapOptions {
  readonly name?: string
  /** Lower stages run first; default 0. */
  readonly stage?: number
}

type Fn = (...args: never[]) => unknown

interface AnyHook {
  readonly name?: string | undefined
  readonly taps: { name: string; fn: Fn; stage?: number }[]
  tap(options: { name: string; stage?: number }, fn: Fn): void
  /** Of asynchronous hooks. */
  tapPromise(options: { name: string; stage?: number }, fn: Fn): void
}

/** The hooks behind the points. */
const behind = new WeakMap<object, AnyHook>()

export function tapPoints(hooks: KernelHooks): TapPoints {
  const points = Object.entries(hooks).map(([name, hook]) => {
    const point = Object.freeze({ kind: 'hook', name })
    behind.set(point, hook as unknown as AnyHook) // its parameters do not matter to a tap list
    return [name, point]
  })
  return Object.freeze(Object.fromEntries(points)) as TapPoints
}

/** Something that can be tapped: a point of the kernel, or a hook of a pack (tapable's). */
export function isTappable(target: unknown): target is Tappable {
  if (typeof target !== 'object' || target === null) return false
  return behind.has(target) || (Array.isArray((target as AnyHook).taps) && typeof (target as AnyHook).tap === 'function')
}

/** A hook as it is now. */
export interface HookFacts {
  /** As its owner named it; empty when it did not. */
  readonly name: string
  /** The kernel's own, or one of a pack; those are known from their first tap to their last. */
  readonly of: 'kernel' | 'pack'
  /** `notify`: nobody hears the answers. `bail`: the first answer wins. `waterfall`: each answer goes to the next. */
  readonly kind: 'notify' | 'bail' | 'waterfall'
  /** In the order in which they are called. */
  readonly taps: readonly { readonly pack: string; readonly name: string; readonly stage: number }[]
}

/** The hooks of a kernel, and those of packs that have taps. */
export class TappedHooks {
  readonly #others = new Set<AnyHook>()
  /** The kernel's own. */
  readonly #names: ReadonlyMap<AnyHook, string>

  constructor(hooks: KernelHooks) {
    this.#names = new Map(Object.entries(hooks).map(([name, hook]) => [hook as unknown as AnyHook, name]))
  }

  add(hook: AnyHook): void {
    for (const other of this.#others) if (other.taps.length === 0) this.#others.delete(other)
    if (!this.#names.has(hook)) this.#others.add(hook)
  }

  facts(): HookFacts[] {
    const tapped = [...this.#others].filter(hook => hook.taps.length > 0)
    return [...this.#names.keys(), ...tapped].map(hook => ({
      name: this.#names.get(hook) ?? hook.name ?? '',
      of: this.#names.has(hook) ? 'kernel' : 'pack',
      kind: kindOf(hook),
      taps: hook.taps.map(({ name, fn, stage = 0 }) => ({ pack: packOfTap({ name, fn }), name, stage }))
    }))
  }
}

function kindOf(hook: AnyHook): HookFacts['kind'] {
  const kind = hook.constructor.name
  return kind.includes('Waterfall') ? 'waterfall' : kind.includes('Bail') ? 'bail' : 'notify'
}

interface OwnedTap {
  readonly pack: string
  /** False since it was taken back. */
  live: boolean
  /** Then: what it says while its pack is away and comes back by itself. */
  readonly away: () => AppError | undefined
}

/** What `ctx.tap` made, by the function that the hook calls. */
const owned = new WeakMap<Fn, OwnedTap>()

/** Whose tap it is, for a pack that calls the taps of its own hooks; the name of a tap that `ctx.tap` did not make. */
export const packOfTap = ({ name, fn }: { readonly name: string; readonly fn: unknown }): string => owned.get(fn as Fn)?.pack ?? name

interface TapOwner {
  readonly guard: Guard
  readonly pack: string
  readonly tapped: TappedHooks
  /** Time limits of asynchronous taps of kernel hooks, ms: those that only notify, and those with a say. */
  readonly notifyMs: number
  readonly answerMs: number
  /** What is said for the pack while it is away and comes back by itself. */
  readonly absence: () => AppError | undefined
}

/** Hooks whose answer counts, also that of a pack that is away for a while. */
const guarding = new WeakSet<object>()

/**
 * Marks an asynchronous bail hook where no opinion would be an answer (whether something may happen, whether something is there): while the
 * pack of a tap is away and comes back by itself, the tap rejects with `PackAway`, where that of any other hook has no opinion.
 */
export function guardHook<H extends object>(hook: H): H {
  guarding.add(hook)
  return hook
}

/** What taps of asynchronous hooks answer that have nothing to say and say so at once. Whoever calls the taps himself need not wait for it. */
export const silence: Promise<undefined> = Promise.resolve(undefined)

/**
 * Adds a tap and returns its undo. tapable has no untap: the tap turns into a no-op (undefined means "no opinion" in every
 * hook kind) and is swept from `hook.taps` at once and at the next registration. Failures are put down to the pack; those of taps that
 * only notify stop there, those of taps with a say reach whoever called the hook.
 */
export function ownedTap(target: Tappable, fn: Fn, options: TapOptions, owner: TapOwner): () => void {
  const { guard, pack, tapped, notifyMs, answerMs, absence } = owner
  const ours = behind.get(target)
  const hook = ours ?? (target as unknown as AnyHook) // what is no point is a hook of a pack, as the type says
  sweep(hook)
  const isAsync = hook.constructor.name.startsWith('Async')
  const notify = kindOf(hook) === 'notify'
  const what = `tap of ${'kind' in target ? target.name : (hook.name ?? 'a hook')}`
  const tap: OwnedTap = { pack, live: true, away: () => (guarding.has(hook) ? absence() : undefined) }
  const failed = (error: unknown): never => {
    // Expected failures and cancellations are no faults of the tap.
    if (!AppError.is(error) && !(error instanceof Error && error.name === 'AbortError')) guard.report(pack, what, error)
    throw error
  }
  const limitMs = !ours ? Number.POSITIVE_INFINITY : notify ? notifyMs : answerMs // a pack bounds the calls of its own hooks
  const ended = async (error: unknown): Promise<unknown> => (notify ? guard.report(pack, what, error) : failed(error))
  const later = (...args: never[]): Promise<unknown> => {
    if (!tap.live) {
      const error = tap.away()
      return error ? Promise.reject(error) : silence
    }
    try {
      const answer = guard.run(pack, what, () => fn(...args))
      return answer === undefined ? silence : inTime(Promise.resolve(answer), limitMs).catch(ended)
    } catch (error) {
      return ended(error)
    }
  }
  const atOnce = (...args: never[]) => {
    if (!tap.live) return undefined
    if (notify) return guard.tell(pack, what, fn, ...args)
    try {
      return guard.run(pack, what, () => fn(...args))
    } catch (error) {
      return failed(error)
    }
  }
  const run = isAsync ? later : atOnce
  owned.set(run, tap)
  const tapOptions = { name: options.name ?? pack, stage: options.stage ?? 0 }
  if (isAsync) hook.tapPromise(tapOptions, run)
  else hook.tap(tapOptions, run)
  tapped.add(hook)
  return () => {
    tap.live = false
    sweep(hook)
  }
}

function sweep(hook: AnyHook): void {
  const kept = hook.taps.filter(({ fn }) => {
    const tap = owned.get(fn)
    return !tap || tap.live || tap.away()
  })
  if (kept.length === hook.taps.length) return
  hook.taps.splice(0, hook.taps.length, ...kept)
  ;(hook as unknown as { _resetCompilation?: () => void })._resetCompilation?.() // tapable compiles its call; a changed list needs a new one
}
