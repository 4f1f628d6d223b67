/** Public face of the mcp pack. */
export { checkConfig, RemoteConfig, redacted, ServerConfig, StdioConfig } from './config.ts'
export { type McpTool, NeedsAuth } from './connection.ts'
export * from './contract.ts'
export { type Entry, effective, serversIn, userFile } from './layers.ts'
export { createRemoteFetch, type RemoteFetch } from './remote.ts'
export * from './service.ts'
export type { TokenSource } from './transports.ts'
