/** Public face of the mcp pack. */
export { checkConfig, isServerFile, type RemoteConfig, redacted, ServerConfig, type StdioConfig } from './config.ts'
export { type McpTool, NeedsAuth, type TokenSource } from './connection.ts'
export * from './contract.ts'
export { type Entry, effective, serversIn, userFile } from './layers.ts'
export * from './service.ts'
