/** One server: its REST routes and its events, with one credential. */
import { EventStream, type EventStreamOptions } from './events.ts'
import { createRest, type Rest, type RestOptions, unwrap } from './rest.ts'

export interface ClientOptions extends RestOptions, Omit<EventStreamOptions, 'url' | 'token' | 'snapshot'> {}

export interface Client {
  /** REST by method and path, typed by the server's own document; `unwrap` takes the data out of an answer. */
  readonly rest: Rest
  /** The WebSocket, opened by the first `watch` or `listen`. */
  readonly events: EventStream
  /** Closes the socket; requests that run go on. */
  close(): void
}

/** Opens nothing yet. */
export function createClient(options: ClientOptions): Client {
  const rest = createRest(options)
  const path = '/api/v1/sessions/{session_id}/snapshot'
  const events = new EventStream({ ...options, snapshot: session_id => unwrap(rest.GET(path, { params: { path: { session_id } } })) })
  return { rest, events, close: () => events.close() }
}
