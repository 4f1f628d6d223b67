/** Which servers want a login: as their configuration and the tokens on disk say, and as a connection shows. */
import { aFewAtOnce, homeOfUser, type Static } from '../../kernel/index.ts'
import { type Entry, type Mcp, NeedsAuth, type RemoteConfig, redacted } from '../mcp/index.ts'
import { isShared, locatorOf, sharedText, shownConfig } from './catalog.ts'
import type { Inspection } from './contract.ts'
import { type CredentialBook, canonicalUrl, isCandidate, tokenOf } from './credentials.ts'

export interface InspectPorts {
  readonly mcp: Mcp
  readonly book: CredentialBook
  now(): Date
}

type Status = Pick<Static<typeof Inspection>, 'authStatus' | 'checkedAt' | 'error'>

/** Connections at once. */
const atOnce = 8

export interface Asked {
  /** Every server of the directory: a name may be shared. */
  readonly all: readonly Entry[]
  readonly cwd: string | undefined
  /** Whom to ask: every candidate, nobody, or those of which nothing is known. */
  readonly verify: boolean | undefined
  readonly signal: AbortSignal
}

/** In the order of the targets; each is asked once. */
export async function statuses(targets: readonly Entry[], asked: Asked, ports: InspectPorts): Promise<readonly Status[]> {
  const each = [...new Set(targets)]
  const found = await aFewAtOnce(each, atOnce, entry => statusOf(entry, asked, ports))
  const byEntry = new Map(each.map((entry, at) => [entry, found[at] as Status]))
  return targets.map(entry => byEntry.get(entry) as Status)
}

async function statusOf(entry: Entry, { all, cwd, verify, signal }: Asked, { mcp, book, now }: InspectPorts): Promise<Status> {
  const { config, problem } = entry
  if (problem !== undefined) return { authStatus: 'unavailable', error: problem }
  if (config.enabled === false || config.transport === 'stdio') return { authStatus: 'not-applicable' }
  if (config.bearerTokenEnvVar !== undefined) return { authStatus: 'bearer-token' }
  if (!isCandidate(entry)) return { authStatus: 'not-applicable' }
  if (isShared(all, entry)) return { authStatus: 'unavailable', error: sharedText(entry.name) }
  const known = await book.read(entry)
  const stored = tokenOf(known) !== undefined
  const pinned = config.auth === 'oauth'
  if (!(verify ?? (!pinned && !stored))) {
    if (!known || !stored) return { authStatus: pinned ? 'oauth-required' : 'not-applicable' }
    const renewable = (known.tokens as { readonly refresh_token?: string }).refresh_token !== undefined
    return { authStatus: book.isExpired(known) && !renewable ? 'oauth-expired' : 'oauth-authorized' }
  }
  const checkedAt = now().getTime()
  try {
    await mcp.probe(entry, cwd ?? homeOfUser(), signal)
    return { authStatus: tokenOf(await book.read(entry)) === undefined ? 'not-applicable' : 'oauth-authorized', checkedAt }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof NeedsAuth) return { authStatus: stored ? 'oauth-expired' : 'oauth-required', checkedAt }
    return { authStatus: 'unavailable', checkedAt, error: (error as Error).message }
  }
}

export function inspection(entry: Entry, status: Status): Static<typeof Inspection> {
  const { name, plugin, config, mutable, source } = entry
  const remote = config.transport === 'stdio' ? {} : { canonicalUrl: shownUrl(config) }
  return {
    serverId: plugin ? `plugin:${encodeURIComponent(plugin.id)}:${encodeURIComponent(plugin.name)}` : `global:${encodeURIComponent(name)}`,
    locator: locatorOf(entry),
    runtimeName: name,
    ...remote,
    origin: source,
    config: shownConfig(entry),
    enabled: config.enabled !== false,
    editable: mutable,
    ...status
  }
}

/** As the redacted configuration shows it. */
const shownUrl = (config: RemoteConfig) => canonicalUrl({ url: (redacted(config) as { readonly url: string }).url })

/** Connects and says what came of it, in words. */
export async function tryServer(
  entry: Entry,
  cwd: string | undefined,
  signal: AbortSignal,
  mcp: Mcp
): Promise<{ success: boolean; output: string }> {
  if (entry.problem !== undefined) return { success: false, output: `its configuration cannot be used: ${entry.problem} (${entry.origin})` }
  try {
    const { tools, omitted, reasons } = await mcp.probe(entry, cwd ?? homeOfUser(), signal)
    const lines = tools.map(({ name, description }) => `- ${name}: ${description}`)
    const left = omitted === 0 ? [] : [`Left out: ${omitted}`, ...reasons.map(reason => `- ${reason}`)]
    const output = [`Connected to MCP server "${entry.name}".`, `Available tools: ${tools.length}`, ...lines, ...left].join('\n')
    return { success: true, output }
  } catch (error) {
    signal.throwIfAborted()
    return { success: false, output: (error as Error).message }
  }
}
