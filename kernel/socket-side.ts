/** Sockets of a hub: who is connected, how a connection begins and ends. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { EventSpec } from './contract.ts'
import type { Fanout } from './fanout.ts'
import type { HubOptions } from './hub.ts'
import type { ConnectionInfo } from './hub-types.ts'
import type { MountedFrame } from './registry.ts'
import type { StreamTable } from './stream-table.ts'

export interface SocketSideOptions extends HubOptions {
  readonly fanout: Fanout
  readonly table: StreamTable
  spec(type: string): EventSpec | undefined
}

export class SocketSide {
  readonly #options: SocketSideOptions

  constructor(options: SocketSideOptions) {
    this.#options = options
  }

  setFrames(_frames: readonly MountedFrame[]): void {}

  connections(): ConnectionInfo[] {
    return []
  }

  upgrade(_req: IncomingMessage, socket: Duplex, _head: Buffer): void {
    socket.destroy()
  }

  endSubscriptions(session_id: string): void {
    this.#options.fanout.end(session_id)
  }

  async close(): Promise<void> {}
}
