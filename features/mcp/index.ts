/** Public face of the mcp pack. */
export { checkConfig, RemoteConfig, redacted, ServerConfig, StdioConfig } from './config.ts'
export { NeedsAuth } from './connection.ts'
export * from './contract.ts'
export { type Entry, effective, fileBytes, serverFileText, serversIn, userFile } from './layers.ts'
export { createRemoteFetch, type RemoteFetch } from './remote.ts'
export * from './service.ts'
export type { TokenSource } from './transports.ts'
export { faultsOf } from './words.ts'
