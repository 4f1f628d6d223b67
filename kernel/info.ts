/** What the kernel tells about itself: the service behind health, meta, connections, shutdown and the API documents. */

import { serviceToken } from './lifecycle/token.ts'
import type { ConnectionInfo } from './realtime/types.ts'

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
  }
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
  connections(): readonly ConnectionInfo[]
  openapi(): object
  asyncapi(): object
  /** Begins a graceful shutdown and returns at once. */
  shutdown(): void
}

/** Provided by the kernel itself. */
export const KernelInfo = serviceToken<KernelInfo>('kernel-info')
