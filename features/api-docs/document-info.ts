/** What a document says about the server that serves it. */
import type { Declarations } from '../../kernel/index.ts'

export interface DocumentInfo {
  readonly title: string
  readonly version: string
  /** Where it answers, `127.0.0.1:58627`; none before it listens. */
  readonly servers?: readonly { readonly host: string; readonly description: string }[]
  /** Whose routes, events and frames they are. */
  readonly owners?: Declarations['owners']
}

/**
 * Who answers for a server on someone's machine is whoever runs it: its own address, and the mailbox that every host has (RFC 2142),
 * spelled as linters want it.
 */
export function contactAt(servers: DocumentInfo['servers'] = []): object {
  return { name: 'Whoever runs this server', url: `http://${servers[0]?.host ?? 'localhost'}`, email: 'postmaster@localhost.localdomain' }
}

export const license = { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' }

/** Addresses to call a server at that listens there: an unspecified host is shown as this machine. */
export function serversAt(address: { readonly host: string; readonly port: number } | undefined): DocumentInfo['servers'] {
  if (!address) return []
  const everywhere = address.host === '0.0.0.0' || address.host === '::'
  const host = everywhere ? '127.0.0.1' : address.host.includes(':') ? `[${address.host}]` : address.host
  return [{ host: `${host}:${address.port}`, description: everywhere ? 'This server, from its own machine' : 'This server' }]
}
