/**
 * Typed client of a svc-code server: REST by path, and the event stream with cursors, resubscription and reconnect. For Node and browsers;
 * contains nothing of the server. README.md shows how to use it.
 */
export { type Client, type ClientOptions, createClient } from './client.ts'
export { Connection, type ConnectionOptions, type Socket, type SocketConstructor } from './connection.ts'
export { EventStream, type EventStreamOptions, type StreamState } from './events.ts'
export { ApiError, type Data, type DataOf, type Rest, type Snapshot, type Token, unwrap } from './rest.ts'
export type * from './types.ts'
export type { Cursor, SessionEvent, Watch, WatchOptions } from './watch.ts'
