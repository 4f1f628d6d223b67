/** MCP as other packs see it: what is configured, connections to try, logins, and who runs. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { Entry } from './layers.ts'
import type { Listed } from './listing.ts'
import type { TokenSource } from './transports.ts'

/** What a login is for: a remote server, by its name and address. */
export interface RemoteLogin {
  readonly name: string
  readonly url: string
}

export interface Mcp {
  /** Entries of all layers for a directory (default: the user's and those of plugins). Throws 40001 for what cannot be read. */
  entries(cwd?: string): Promise<readonly Entry[]>
  /** Connects, lists the tools and ends again. Rejects with NeedsAuth, or with why for people. `cwd`: where relative paths begin. */
  probe(entry: Entry, cwd: string, signal: AbortSignal): Promise<Listed>
  /** The configuration of a directory, or of all, may have changed: servers of live sessions follow it. */
  changed(): void
  /** The login of a server has come or gone: those of live sessions connect anew. Without one it is not known which: those that want one do. */
  credentialsChanged(login?: RemoteLogin): void
}
export const Mcp = serviceToken<Mcp>('mcp')

/** Logins of remote servers. */
export interface McpLogins {
  /** Undefined: the server is not one that OAuth is for. */
  tokens(entry: Entry): TokenSource | undefined
  /** Signs in: tells the address for the user's browser, resolves when the login is on disk. Rejects with why for people. */
  login?(
    entry: Entry,
    told: (login: { readonly authorizationUrl: string; readonly expiresAt: string }) => void,
    signal: AbortSignal
  ): Promise<void>
}
export const McpLogins = extensionPoint<McpLogins>('mcp-logins', undefined, { tokens: 'function' }, { tokens: () => undefined })
