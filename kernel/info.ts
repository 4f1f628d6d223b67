/**
 * Services of the kernel itself: what it tells (behind health, meta, connections, shutdown and the API documents), and packs seen and switched
 * while it runs.
 */

import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from './contract.ts'
import type { AppError } from './errors.ts'
import type { Inject } from './http/inject.ts'
import type { Faults, LoopTime } from './lifecycle/guard.ts'
import type { HookFacts } from './lifecycle/hooks.ts'
import { serviceToken } from './lifecycle/services.ts'
import type { Pack } from './pack.ts'
import type { SubjectRule } from './realtime/event-frame.ts'
import type { ConnectionInfo, StreamFacts } from './realtime/types.ts'

export type PackState = 'Pending' | 'Activating' | 'Active' | 'Unloading' | 'Failed'

/** One row of `meta.features`. */
export interface Feature {
  readonly name: string
  readonly state: PackState
  readonly meta: {
    readonly version?: string
    /** Ids of needed services that nobody provides yet. */
    readonly waiting_for?: readonly string[]
    /** Why the pack failed. */
    readonly error?: string
    /** What of this pack went wrong since it was activated: listeners, taps, clean-ups. Absent while nothing did. */
    readonly faults?: Faults
  }
}

/** What a kernel holds at the moment. */
export interface Internals {
  readonly hooks: readonly HookFacts[]
  readonly streams: readonly StreamFacts[]
  /** Bytes of events of all streams that wait for disk and sockets. */
  readonly waiting_bytes: number
}

/** What a pack says about itself. */
export type PackFacts = Pick<Pack, 'name' | 'description' | 'area'>

/** Everything that is declared on the wire: what active packs registered, and the kernel's own frames. */
export interface Declarations {
  readonly routes: readonly AnyRoute[]
  readonly events: readonly EventSpec[]
  /** Requests of WebSocket clients, the kernel's own first. */
  readonly frames: readonly FrameSpec[]
  /** Frames that packs send outside the event scheme. */
  readonly outFrames: readonly OutFrameSpec[]
  /** Frames of the kernel itself (server_hello, resync_required). */
  readonly systemFrames: readonly OutFrameSpec[]
  /** Who declared each of the above; what the kernel itself declares is not listed. */
  readonly owners: ReadonlyMap<object, PackFacts>
  /** How events name whom they are about; undefined when no pack says so. */
  readonly subject: SubjectRule | undefined
}

export interface KernelInfo {
  readonly version: string
  /** ULID of this server instance. */
  readonly server_id: string
  readonly started_at: Date
  readonly dangerous_bypass_auth: boolean
  /** Bound to a loopback address only. */
  readonly loopback: boolean
  readonly allow_remote_shutdown: boolean
  /** Packs may mount debug routes: asked for, and bound to a loopback address. */
  readonly debug_endpoints: boolean
  /** The operator started the server offline (flag or environment); the user's configuration may say so, too. */
  readonly offline: boolean
  features(): readonly Feature[]
  /** What is answered for a pack that is away for a while (`PackAway`); undefined: it is active, or nobody knows that it comes back. */
  absence(pack: string): AppError | undefined
  /** How long a pack had the event loop since it was activated; undefined while it had it for less than a millisecond. */
  time(pack: string): LoopTime | undefined
  connections(): readonly ConnectionInfo[]
  /** For whoever looks for the reason of something; made anew by each call. */
  internals(): Internals
  /** What is on the wire now; the same object as long as no pack comes or goes. */
  declarations(): Declarations
  /** Where the server listens; undefined before it does. */
  address(): { readonly host: string; readonly port: number } | undefined
  /** See `Kernel.inject`. */
  readonly inject: Inject
  /** Begins a graceful shutdown and returns at once. */
  shutdown(): void
}

/** Provided by the kernel itself. */
export const KernelInfo = serviceToken<KernelInfo>('kernel-info')

/** Everything about one pack of the kernel, also of one that was unloaded. */
export interface PackReport extends Feature {
  readonly pack: Pack
  /** False once it was unloaded on purpose. */
  readonly wanted: boolean
  /** The server was started on condition that it is active. */
  readonly required: boolean
  /** How long its last setup took, ms; undefined before the first. */
  readonly setup_ms: number | undefined
  /** Since when it is active. */
  readonly active_since: Date | undefined
  /** Its deployment options with defaults filled in; undefined when what was given does not fit its schema. */
  readonly options: Readonly<Record<string, unknown>> | undefined
}

/** What is to become of several packs at once. */
export interface PackChange {
  /** They are unloaded, those that use them first, which then wait; `load` brings them back. */
  readonly unload?: readonly string[]
  /** They are unloaded and forgotten. */
  readonly remove?: readonly string[]
  /** They are unloaded and activated again, a `Pack` in place of the one of its name. */
  readonly reload?: readonly (Pack | string)[]
  /** They are added, or enabled again; a failed pack stays failed: that takes `reload`. Another pack of a name that is there is refused. */
  readonly load?: readonly (Pack | string)[]
}

/**
 * Packs come and go while the server runs. One change after the other; each resolves when nothing more follows from it. Not to be awaited in a
 * setup or a clean-up, which is a part of such a change itself.
 */
export interface PackControl {
  list(): readonly PackReport[]
  /**
   * While requests, sockets and turns go on; packs that do not need each other side by side. All of it or, when a part is refused, nothing:
   * throws a DeveloperError (`pack_unknown`, `pack_there`).
   */
  change(change: PackChange): Promise<void>
  /** Other deployment options for a pack, from its next activation on; undefined for none. */
  configure(name: string, options: unknown): void
}

/** Provided by the kernel itself. */
export const PackControl = serviceToken<PackControl>('pack-control')
