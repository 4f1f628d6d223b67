/** Logins at remote servers on disk: one file each, keyed by name and address, 0600; changed under a lock of all processes. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { type DocumentStore, defineStore, type Static, Type, withLock } from '../../kernel/index.ts'
import { watchConfig } from '../config/index.ts'
import type { Entry, RemoteConfig, TokenSource } from '../mcp/index.ts'

const Loose = Type.Object({}, { additionalProperties: true })

/** `<home>/credentials/mcp/<name>-<24 hex>.json` */
export const credentialStore = defineStore({
  name: 'mcp-credentials',
  kind: 'document',
  value: Type.Object({
    url: Type.String(),
    tokens: Type.Optional(Loose),
    /** ms; absent: the server did not say. */
    expires_at: Type.Optional(Type.Number()),
    client: Type.Optional(Loose),
    discovery: Type.Optional(Loose)
  })
})
export type Credentials = Static<typeof credentialStore.value>

export interface CredentialPorts {
  readonly store: DocumentStore<Credentials>
  /** `<home>/credentials/mcp` */
  readonly dir: string
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  now(): Date
}

/** Tokens are renewed so long before they end, those of less than four minutes at half of their time. */
const aheadMs = 120_000
const refreshMs = 30_000

export const canonicalUrl = ({ url }: Pick<RemoteConfig, 'url'>): string => {
  const canonical = new URL(url)
  canonical.hash = ''
  return canonical.href
}

/** A remote server that brings no credential of its own. */
export function isCandidate({ config }: Entry): boolean {
  if (config.transport === 'stdio' || config.enabled === false || config.bearerTokenEnvVar !== undefined) return false
  return config.auth === 'oauth' || Object.keys(config.headers ?? {}).length === 0
}

export function idOf({ name, config }: Entry): string {
  const hash = createHash('sha256')
    .update(canonicalUrl(config as RemoteConfig))
    .digest('hex')
    .slice(0, 24)
  return `${name.replace(/[^\w-]+/g, '_').slice(0, 80)}-${hash}`
}

export class CredentialBook {
  readonly #ports: CredentialPorts

  constructor(ports: CredentialPorts) {
    this.#ports = ports
  }

  async read(entry: Entry): Promise<Credentials | undefined> {
    return await this.#ports.store.get(idOf(entry))
  }

  async write(entry: Entry, given: Pick<Credentials, 'tokens' | 'client' | 'discovery'>): Promise<void> {
    const { expires_in } = (given.tokens ?? {}) as Partial<OAuthTokens>
    const expires = typeof expires_in === 'number' ? { expires_at: this.#ports.now().getTime() + expires_in * 1000 } : {}
    await this.#ports.store.put(idOf(entry), { url: canonicalUrl(entry.config as RemoteConfig), ...given, ...expires })
  }

  /** Forgets the login; what the server is known by stays out, too. */
  async forget(entry: Entry): Promise<void> {
    await this.locked(entry, () => this.#ports.store.delete(idOf(entry)))
  }

  locked<T>(entry: Entry, work: () => Promise<T>): Promise<T> {
    return withLock(join(this.#ports.dir, `${idOf(entry)}.lock`), work, { timeoutMs: refreshMs * 2 })
  }

  isExpired({ expires_at }: Credentials, ahead = 0): boolean {
    return expires_at !== undefined && expires_at - ahead <= this.#ports.now().getTime()
  }

  #isDue(known: Credentials): boolean {
    const { expires_in } = (known.tokens ?? {}) as Partial<OAuthTokens>
    return this.isExpired(known, Math.min(aheadMs, typeof expires_in === 'number' ? expires_in * 500 : aheadMs))
  }

  /** An access token that holds, renewed if it must be; undefined when there is none any more. `refused`: one that the server does not take. */
  async accessToken(entry: Entry, refused?: string): Promise<string | undefined> {
    const known = await this.read(entry)
    const token = tokenOf(known)
    if (!known || token === undefined) return undefined
    if (token !== refused && !this.#isDue(known)) return token
    return await this.locked(entry, async () => {
      const latest = await this.read(entry)
      const there = tokenOf(latest)
      if (!latest || there === undefined) return undefined
      if (there !== refused && !this.#isDue(latest)) return there // another process was quicker
      const renewed = await this.#renew(entry, latest)
      if (typeof renewed === 'string') return renewed
      if (renewed.isOver) await this.#spend(entry, latest, there === refused)
      // One that is about to end is better than none.
      return there === refused || this.isExpired(latest) ? undefined : there
    })
  }

  /** What nobody takes any more is not tried again: the state says that a login is needed, and one can begin. */
  async #spend(entry: Entry, known: Credentials, isRefused: boolean): Promise<void> {
    const { refresh_token, ...tokens } = known.tokens as Partial<OAuthTokens>
    if (refresh_token === undefined && !isRefused) return
    const ended = isRefused ? { expires_at: this.#ports.now().getTime() } : {}
    await this.#ports.store.put(idOf(entry), { ...known, tokens, ...ended })
  }

  tokens(entry: Entry): TokenSource {
    return {
      token: () => this.accessToken(entry),
      renewed: refused => this.accessToken(entry, refused),
      onChange: listener => watchConfig(join(this.#ports.dir, `${idOf(entry)}.json`), listener)
    }
  }

  /** The new access token. `isOver`: the authorization server gives none any more; else nobody answered as it should. */
  async #renew(entry: Entry, known: Credentials): Promise<string | { readonly isOver: boolean }> {
    if ((known.tokens as Partial<OAuthTokens> | undefined)?.refresh_token === undefined) return { isOver: true }
    const { auth } = await import('@modelcontextprotocol/sdk/client/auth.js')
    const limit = AbortSignal.timeout(refreshMs)
    const fetchFn: CredentialPorts['fetch'] = (url, init) => this.#ports.fetch(url, { ...init, signal: limit })
    let fresh: OAuthTokens | undefined
    let isOver = false
    const provider: OAuthClientProvider = {
      redirectUrl: 'http://127.0.0.1/callback',
      clientMetadata: { redirect_uris: ['http://127.0.0.1/callback'] },
      clientInformation: () => known.client as OAuthClientInformationMixed | undefined,
      tokens: () => (isOver ? undefined : (known.tokens as unknown as OAuthTokens)),
      invalidateCredentials() {
        isOver = true
      },
      saveTokens(tokens) {
        fresh = tokens
      },
      ...(known.discovery ? { discoveryState: () => known.discovery as unknown as OAuthDiscoveryState } : {}),
      redirectToAuthorization() {
        throw new Error('a new login is needed')
      },
      saveCodeVerifier() {},
      codeVerifier: () => ''
    }
    try {
      await auth(provider, { serverUrl: canonicalUrl(entry.config as RemoteConfig), fetchFn })
    } catch {
      return { isOver }
    }
    if (!fresh) return { isOver }
    await this.write(entry, { ...known, tokens: { ...(known.tokens as object), ...fresh } })
    return fresh.access_token
  }
}

export const tokenOf = (credentials: Credentials | undefined): string | undefined =>
  (credentials?.tokens as Partial<OAuthTokens> | undefined)?.access_token
