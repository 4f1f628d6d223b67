/** What the kernel offers the pack that knows the other servers of the home, for what comes from there and goes there. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Asker, SharedEvent } from './elsewhere.ts'
import { serviceToken } from './lifecycle/services.ts'
import type { LocalClient, LocalConnection } from './realtime/local.ts'

export interface Relays {
  /** Answers a request that another server passes on: everything but gate and credential, which that one has looked at. */
  serve(req: IncomingMessage, res: ServerResponse, asker: Asker): void
  /** Connects a client of another server. What reaches everyone comes to it only for sessions that it subscribed to. */
  connect(client: LocalClient): LocalConnection
  /** Hears the events of this server that reach everyone. */
  onShared(listener: (event: SharedEvent) => void): () => void
  /** Gives the clients of this server what another one has told its own. */
  deliver(event: SharedEvent): void
}

/** Provided by the kernel itself. */
export const Relays = serviceToken<Relays>('relays')
