/** What the kernel tells about itself: the service behind health, meta, connections, shutdown and the API documents. */

import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from './contract.ts'
import type { Inject } from './http/inject.ts'
import type { LoopTime } from './lifecycle/guard.ts'
import type { HookFacts } from './lifecycle/hooks.ts'
import { serviceToken } from './lifecycle/services.ts'
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
    readonly faults?: { readonly count: number; readonly last: string }
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
export interface PackFacts {
  readonly name: string
  readonly description?: string | undefined
  readonly area?: string | undefined
}

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
  readonly home: string
  readonly dangerous_bypass_auth: boolean
  /** Bound to a loopback address only. */
  readonly loopback: boolean
  readonly allow_remote_shutdown: boolean
  /** Packs may mount debug routes: asked for, and bound to a loopback address. */
  readonly debug_endpoints: boolean
  /** The operator started the server offline (flag or environment); the user's configuration may say so, too. */
  readonly offline: boolean
  features(): readonly Feature[]
  /** How long a pack had the event loop since it was activated; undefined while it had it for less than a millisecond. */
  time(pack: string): LoopTime | undefined
  connections(): readonly ConnectionInfo[]
  /** For whoever looks for the reason of something; made anew by each call. */
  internals(): Internals
  /** What is on the wire now; the same object as long as no pack comes or goes. */
  declarations(): Declarations
  /** Where the server listens; undefined before it does. */
  address(): { readonly host: string; readonly port: number } | undefined
  /** Asks a route in this process, without a socket; see `Kernel.inject`. */
  readonly inject: Inject
  /** Begins a graceful shutdown and returns at once. */
  shutdown(): void
}

/** Provided by the kernel itself. */
export const KernelInfo = serviceToken<KernelInfo>('kernel-info')
