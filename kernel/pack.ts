/** The pack door: `definePack` and the context that `setup` receives. */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { Principal } from './access/principal.ts'
import type { AnyRoute, BodyOf, DataOf, EventSpec, FrameSpec, OutFrameSpec, ParamsOf, QueryOf, StoreSpec } from './contract.ts'
import type { ErrorSpec } from './errors.ts'
import type { BinaryReply } from './http/binary.ts'
import type { KernelHooks, TapOptions } from './lifecycle/hooks.ts'
import type { Dispose } from './lifecycle/scope.ts'
import type { Slot } from './lifecycle/slot.ts'
import type { ExtensionPoint, Needs, Resolved, ResolvedOptional, ServiceToken } from './lifecycle/token.ts'
import type { Logger } from './log/log.ts'
import type { Connection, Emit, Listener, Streams } from './realtime/types.ts'
import type { StoreOf } from './storage/ports.ts'

export interface RequestInfo {
  /** ULID; the envelope's `request_id`. */
  readonly id: string
  readonly method: string
  /** Target as received (path and query). */
  readonly url: string
  /** `authorization` is masked. */
  readonly headers: IncomingHttpHeaders
  readonly remote_address: string | null
  /** Who asks, as the gate found it. */
  readonly principal: Principal
  /** Body bytes of routes with `bodyType: 'stream'`. */
  readonly stream: Readable
  readonly raw: IncomingMessage
}

export interface RouteInput<R extends AnyRoute> {
  readonly params: ParamsOf<R>
  readonly query: QueryOf<R>
  readonly body: BodyOf<R>
  readonly request: RequestInfo
  /** Aborts when the client goes away or the pack is unloaded after its grace time. */
  readonly signal: AbortSignal
}

type Awaitable<T> = T | Promise<T>
export type RouteHandler<R extends AnyRoute> = (input: RouteInput<R>) => Awaitable<DataOf<R> | BinaryReply>

export interface FrameInput<F extends FrameSpec> {
  readonly payload: F extends FrameSpec<infer P, TSchema> ? Static<P> : never
  readonly connection: Connection
}
export type FrameHandler<F extends FrameSpec> = (
  input: FrameInput<F>
) => Awaitable<F extends FrameSpec<TSchema, infer A> ? Static<A> : never>

/** Live list behind an extension point. */
export interface Collection<T> {
  /** Items in activation order of their packs. */
  items(): readonly T[]
  /** Called after every change, until the returned undo or the pack's end. */
  onChange(listener: () => void): () => void
}

/** What a pack can do. Every call registers its own undo: nothing needs to be taken back by hand. */
export interface PackContext<C = unknown> {
  readonly name: string
  /** Deployment options, checked against the pack's schema, defaults filled in. */
  readonly config: C
  /** pino child that carries the pack's name; secrets are redacted. */
  readonly log: Logger
  /** Absolute path of the home directory. */
  readonly home: string
  /** Aborts when the pack begins to unload. */
  readonly signal: AbortSignal
  readonly hooks: KernelHooks
  readonly streams: Streams
  now(): Date
  /** Monotonic ULID. */
  newId(): string
  route<R extends AnyRoute>(spec: R, handler: RouteHandler<R>): void
  /** Registers the event type and returns its emitter. */
  event<E extends EventSpec>(spec: E): Emit<E>
  /** Listens to another pack's event, synchronously at emission. */
  on<E extends EventSpec>(spec: E, listener: Listener<E>): void
  frame<F extends FrameSpec>(spec: F, handler: FrameHandler<F>): void
  /** Lists a frame that the pack sends by `connection.send`. */
  outFrame(spec: OutFrameSpec): void
  /** The pack's own store: kv under its name; others below `<home>/packs/<pack>/<store>`. `dir` overrides the place (relative to the home). */
  store<S extends StoreSpec>(spec: S, place?: { readonly dir: string }): StoreOf<S>
  /** A store in a directory (absolute), for hosts that keep their state together. */
  storeAt<S extends StoreSpec>(spec: S, dir: string): StoreOf<S>
  provide<T>(token: ServiceToken<T>, impl: T): void
  contribute<T>(point: ExtensionPoint<T>, item: T): void
  collect<T>(point: ExtensionPoint<T>): Collection<T>
  /** The slot belongs to this pack: its values are closed when the pack unloads. */
  slot(slot: Slot<unknown, never> | Slot<unknown>): void
  /** Taps a tapable hook; the tap ends with the pack. */
  // biome-ignore lint/suspicious/noExplicitAny: tapable's hook classes differ only in type parameters that do not matter here
  tap<H extends { tap(options: any, fn: any): void }>(hook: H, fn: TapFn<H>, options?: TapOptions): void
  /** Registers an undo (timer, watcher, socket, child process). */
  own(dispose: Dispose): () => Promise<void>
  /** Runs work in the background: its failure is logged, unloading waits for it within the grace time. */
  background(work: (signal: AbortSignal) => Promise<unknown>): void
}

// biome-ignore lint/suspicious/noExplicitAny: argument types are inferred from tapable's own declaration
export type TapFn<H> = H extends { tapPromise(options: any, fn: infer F): void }
  ? F extends (...args: infer A) => Promise<infer R>
    ? (...args: A) => R | Promise<R> | undefined
    : never
  : // biome-ignore lint/suspicious/noExplicitAny: as above
    H extends { tap(options: any, fn: infer F): void }
    ? F
    : never

export interface Pack {
  readonly kind: 'pack'
  readonly name: string
  readonly version?: string | undefined
  readonly description?: string | undefined
  readonly needs: Needs
  readonly optional: Needs
  readonly provides: readonly ServiceToken<unknown>[]
  readonly config?: TObject | undefined
  /** Specs that no route lists but that must be unique all the same. */
  readonly errors: readonly ErrorSpec[]
  readonly setup: (ctx: PackContext<never>, services: never) => Awaitable<void>
}

export interface PackSpec<N extends Needs, O extends Needs, C extends TObject | undefined> {
  /** kebab-case, unique in a deployment. */
  readonly name: string
  readonly version?: string
  readonly description?: string
  /** Services that must be there before `setup` runs; they arrive as its second argument. */
  readonly needs?: N
  /** Services that may be there; they arrive as functions returning the service or undefined. */
  readonly optional?: O
  /** Services that `setup` promises to provide. */
  readonly provides?: readonly ServiceToken<unknown>[]
  /** Deployment options (`[packs.config.<name>]`); not the user's configuration file sections. */
  readonly config?: C
  readonly errors?: readonly ErrorSpec[]
  /** Wires the pack and returns quickly; long work goes to `ctx.background`. */
  readonly setup: (
    ctx: PackContext<C extends TObject ? Static<C> : Record<string, never>>,
    services: Resolved<N> & ResolvedOptional<O>
  ) => Awaitable<void>
}

/** Declares a pack. */
export function definePack<
  N extends Needs = Record<never, never>,
  O extends Needs = Record<never, never>,
  C extends TObject | undefined = undefined
>(spec: PackSpec<N, O, C>): Pack {
  return {
    kind: 'pack',
    name: spec.name,
    version: spec.version,
    description: spec.description,
    needs: spec.needs ?? {},
    optional: spec.optional ?? {},
    provides: spec.provides ?? [],
    config: spec.config,
    errors: spec.errors ?? [],
    setup: spec.setup as Pack['setup']
  }
}
