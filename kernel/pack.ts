/** The pack door: `definePack`, and the context that `setup` receives. */

import type { ChildProcess, SpawnOptions } from 'node:child_process'
import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { AnyRoute, BodyOf, DataOf, EventSpec, FrameSpec, OutFrameSpec, ParamsOf, QueryOf, RequestInfo, StoreSpec } from './contract.ts'
import { isErrorSpec } from './declared.ts'
import { developerError, type ErrorSpec } from './errors.ts'
import type { BinaryReply } from './http/bytes.ts'
import type { TapFn, TapOptions, TapPoints, Tappable } from './lifecycle/hooks.ts'
import type { Dispose } from './lifecycle/scope.ts'
import type { Accounts, Collection, ExtensionPoint, Needs, Resolved, ResolvedOptional, ServiceToken } from './lifecycle/services.ts'
import type { AnySlot, Hosts } from './lifecycle/slot.ts'
import type { Logger, Operator } from './log/log.ts'
import type { Connection, Emit, Listener, Streams } from './realtime/types.ts'
import { isSchema } from './schema.ts'
import type { Fence } from './storage/fences.ts'
import type { StoreOf } from './storage/ports.ts'

/** What a route handler gets: values checked against the route's schemas, defaults filled in. */
export interface RouteInput<R extends AnyRoute> {
  readonly params: ParamsOf<R>
  readonly query: QueryOf<R>
  readonly body: BodyOf<R>
  readonly request: RequestInfo
  /** Aborts when the client goes away or the pack is unloaded after its grace time. */
  readonly signal: AbortSignal
}

type Awaitable<T> = T | Promise<T>
/** Answers a route: with its `data`, with bytes (`binary(...)`), or by throwing an `AppError` that the route declares. */
export type RouteHandler<R extends AnyRoute> = (input: RouteInput<R>) => Awaitable<DataOf<R> | BinaryReply>

/** What a frame handler gets. */
export interface FrameInput<F extends FrameSpec> {
  readonly payload: F extends FrameSpec<infer P, TSchema> ? Static<P> : never
  /** What a binary message brought beside the frame; empty otherwise. */
  readonly bytes: Buffer
  readonly connection: Connection
  /** Aborts when the connection is over, the pack unloads, or the handler takes longer than it may. */
  readonly signal: AbortSignal
}
/** Answers a request frame: with the payload of its ack, or by throwing an `AppError` that the frame declares. */
export type FrameHandler<F extends FrameSpec> = (
  input: FrameInput<F>
) => Awaitable<F extends FrameSpec<TSchema, infer A> ? Static<A> : never>

/** Takes a registration back, before the pack's end does; later calls do nothing. */
export type Undo = () => void

/** What is known of a frame before its payload is checked. */
export interface RawFrame {
  readonly payload: unknown
  readonly connection: Connection
  readonly signal: AbortSignal
}
/** Refuses a frame by throwing an AppError, before its payload is checked. */
export type FrameCheck = (frame: RawFrame) => Awaitable<void>

/**
 * What a pack can do. Every registration registers its own undo, so that nothing needs to be taken back by hand, and returns it, should it
 * have to go early. Once the pack is gone, every call throws `pack_inactive` (promises of stores and streams reject with it); clean-ups
 * may still use what was opened before.
 */
export interface PackContext<C = unknown> extends Accounts {
  readonly name: string
  /** Deployment options, checked against the pack's schema, defaults filled in. */
  readonly config: C
  /** pino child that carries the pack's name; secrets are redacted. */
  readonly log: Logger
  /** Tells whoever runs the server, at the terminal and in the log. */
  readonly operator: Operator
  /** Absolute path of the home directory. */
  readonly home: string
  /** Aborts when the clean-up of the pack begins: its running requests have ended, or their grace time has. */
  readonly signal: AbortSignal
  /** The hooks of the kernel, for `tap`. */
  readonly hooks: TapPoints
  readonly streams: Streams
  /** What hosts of slots (sessions, agents) are made with. */
  readonly hosts: Hosts
  now(): Date
  /** Monotonic ULID. */
  newId(): string
  /** Answers a route. Throws `wire_clash` when another pack has it (during setup: the pack fails once it is through). */
  route<R extends AnyRoute>(spec: R, handler: RouteHandler<R>): Undo
  /** Registers the event type and returns its emitter, which throws once the registration is undone. */
  event<E extends EventSpec>(spec: E): Emit<E> & { readonly undo: Undo }
  /** Listens to another pack's event, synchronously at emission. */
  on<E extends EventSpec>(spec: E, listener: Listener<E>): Undo
  /** Answers a request frame. `before` refuses what must be refused before its payload is checked. Throws as `route` does. */
  frame<F extends FrameSpec>(spec: F, handler: FrameHandler<F>, before?: FrameCheck): Undo
  /** Lists a frame that the pack sends by `connection.send`. */
  outFrame(spec: OutFrameSpec): Undo
  /** The pack's own store: kv under its name; others below `<home>/packs/<pack>/<store>`. `dir` overrides the place (relative to the home). */
  store<S extends StoreSpec>(spec: S, place?: { readonly dir: string }): StoreOf<S>
  /** A store in a directory (absolute), for hosts that keep their state together. */
  storeAt<S extends StoreSpec>(spec: S, dir: string): StoreOf<S>
  /**
   * Says which lease guards a file (absolute path), for whoever takes directories for one server at a time: what stores write there counts only
   * when it has passed the fence. Asked before every write. Clean-ups that were registered later still write under it.
   */
  fence(of: (file: string) => Fence | undefined): Undo
  /**
   * During setup only. The undo takes the service back, the packs that need it first; it resolves when they are gone (not to be awaited in
   * a setup or a clean-up).
   */
  provide<T>(token: ServiceToken<T>, impl: T): () => Promise<void>
  contribute<T>(point: ExtensionPoint<T>, item: T): Undo
  collect<T>(point: ExtensionPoint<T>): Collection<T>
  /** The slot belongs to this pack: its values are closed when the pack unloads, and none is opened until it is active again. */
  slot(slot: AnySlot): () => Promise<void>
  /** Taps a hook of the kernel (`ctx.hooks`) or a tapable hook of another pack; the tap carries the pack's name and ends with it. */
  tap<H extends Tappable>(hook: H, fn: TapFn<H>, options?: TapOptions): Undo
  /** Registers an undo (watcher, socket, listener). The returned function runs it early. */
  own(dispose: Dispose): () => Promise<void>
  /**
   * Runs `work` every `ms` (1 to 2,147,483,647; RangeError). The next `ms` begin when what it answers has settled: it never runs twice at a
   * time. A failure is the pack's and stops nothing; unloading waits for a run within the grace time. The process does not stay for it.
   */
  timer(ms: number, work: () => unknown): Undo
  /**
   * Starts a program as `spawn` of `node:child_process` does, in a process group of its own (POSIX), and owns it: when the pack ends, the
   * group gets SIGTERM, and SIGKILL after half of the grace time (`graceMs`); what the program leaves in its group is killed when it ends;
   * none outlives the server. A program that cannot be started is a fault of the pack, unless the pack listens to `error`.
   */
  spawn(command: string, args?: readonly string[], options?: SpawnOptions): ChildProcess
  /**
   * Takes this pack out as Failed with this reason, and who needs it waits: until it is reloaded, or so long as a PassingFailure says. Does
   * nothing once it leaves.
   */
  fail(error: Error): void
  /** Runs work in the background: its failure is logged, unloading waits for it within the grace time. */
  background(work: (signal: AbortSignal) => Promise<unknown>): void
}

type AnySpec = PackSpec<Needs, Needs, TObject | undefined>

/** A pack as `definePack` makes it. */
export interface Pack
  extends Pick<AnySpec, 'name' | 'version' | 'description' | 'area' | 'config'>,
    Required<Pick<AnySpec, 'needs' | 'optional' | 'provides' | 'errors'>> {
  readonly kind: 'pack'
  readonly setup: (ctx: PackContext<never>, services: never) => unknown
  /** Why it cannot run: it stands in for a pack that could not be loaded, and fails with this, whatever its options. */
  readonly broken?: Error | undefined
  /** File that the pack was loaded from, absolute; set by who loads it. An error whose stack names it, or its folder, is put down to the pack. */
  source?: string | undefined
  /** What is known of the process that it runs in, should it have one of its own; set by who loads it. */
  readonly process?: (() => PackProcessFacts) | undefined
}

/** A process that one pack runs in. */
export interface PackProcessFacts {
  /** Undefined while there is none. */
  readonly pid: number | undefined
  /** As it was looked at last, bytes. */
  readonly memory_bytes: number | undefined
  /** How often it was started anew because it had ended by itself. */
  readonly restarts: number
}

/** What `definePack` takes. */
export interface PackSpec<N extends Needs, O extends Needs, C extends TObject | undefined> {
  /** kebab-case, unique in a deployment. */
  readonly name: string
  /** Shown in `meta.features`. */
  readonly version?: string
  /** One line for people; in the API documents it describes the pack's tag. */
  readonly description?: string
  /** Heading that it stands under beside packs of its kind, in the API documents and in tables: `Tools`. Default `Other`. */
  readonly area?: string
  /** Services that must be there before `setup` runs; they arrive as its second argument. */
  readonly needs?: N
  /** Services that may be there; they arrive as functions returning the service or undefined. */
  readonly optional?: O
  /** Services that `setup` promises to provide. */
  readonly provides?: readonly ServiceToken<unknown>[]
  /** Deployment options (`[packs.config.<name>]`); not the user's configuration file sections. */
  readonly config?: C
  /** Specs that no route lists but that must be unique all the same. */
  readonly errors?: readonly ErrorSpec[]
  /** Wires the pack and returns quickly; long work goes to `ctx.background`. A promise is awaited, what it answers is ignored. */
  readonly setup: (
    ctx: PackContext<C extends TObject ? Static<C> : Record<string, never>>,
    services: Resolved<N> & ResolvedOptional<O>
  ) => unknown
}

/** Declares a pack. One that is not made of what it should be (packs need not be typed) is there and fails, with the reason. */
export function definePack<
  N extends Needs = Record<never, never>,
  O extends Needs = Record<never, never>,
  C extends TObject | undefined = undefined
>(spec: PackSpec<N, O, C>): Pack {
  const { name, version, description, area, needs = {}, optional = {}, provides = [], config, errors = [] } = spec
  if (typeof name !== 'string' || name === '') throw developerError('pack_malformed', String(name), 'name')
  const pack = { kind: 'pack', name, version, description, area, setup: spec.setup as Pack['setup'] } as const
  const odd = typeof spec.setup === 'function' ? oddPart({ needs, optional, provides, errors, config }) : 'setup'
  if (odd !== undefined) {
    return { ...pack, needs: {}, optional: {}, provides: [], errors: [], broken: developerError('pack_malformed', name, odd) }
  }
  return { ...pack, needs, optional, provides, config, errors }
}

/** The first part that does not hold what the kernel reads of it without asking. */
function oddPart({ needs, optional, provides, errors, config }: Partial<Pack>): string | undefined {
  const isToken = (value: unknown) => typeof (value as { id?: unknown } | null | undefined)?.id === 'string'
  for (const [part, tokens] of Object.entries({ needs, optional })) {
    if (typeof tokens !== 'object' || tokens === null) return part
    const odd = Object.keys(tokens).find(key => !isToken(tokens[key]))
    if (odd !== undefined) return `${part}.${odd}`
  }
  if (!Array.isArray(provides) || !provides.every(isToken)) return 'provides'
  if (!Array.isArray(errors) || !errors.every(isErrorSpec)) return 'errors'
  return config === undefined || (isSchema(config) && config.type === 'object') ? undefined : 'config'
}
