/** One login: discovery and registration, a page of the server in the user's browser, the code that comes back, the tokens for it. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { headOf } from '../../kernel/index.ts'
import { type Entry, faultsOf, type RemoteConfig } from '../mcp/index.ts'
import { type CredentialBook, canonicalUrl } from './credentials.ts'

export interface FlowPorts {
  readonly book: CredentialBook
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  /** A flow of which nobody asks any more ends after this time, ms. */
  readonly idleMs: number
  newId(): string
  /** The entry still stands where it was. */
  readonly isThere: (entry: Entry) => Promise<boolean>
  /** The login is on disk. */
  readonly authorized: (entry: Entry) => void
}

const requestMs = 30_000
const challengeMs = 10_000
const clientName = 'svc-code'

/** A server that wants a login refuses it; another one begins nothing for it. */
const ping = (headers: Readonly<Record<string, string>> = {}): RequestInit => ({
  method: 'POST',
  headers: { ...headers, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' })
})

/** One login at one server; whoever begins it again meanwhile joins it. */
export class Flow {
  readonly entry: Entry
  readonly ids = new Set<string>()
  readonly #ports: FlowPorts
  readonly #state = randomBytes(32).toString('base64url')
  readonly #ended: () => void
  #server: Server | undefined
  #idle: NodeJS.Timeout | undefined
  #over = false
  #redirect = ''
  #verifier = ''
  #client: OAuthClientInformationMixed | undefined
  #discovery: OAuthDiscoveryState | undefined
  #tokens: OAuthTokens | undefined
  #finishing: Promise<string | undefined> | undefined
  #settle: (problem: string | undefined) => void = () => {}
  /** Resolves with why it failed, or with nothing; never rejects. */
  readonly outcome: Promise<string | undefined>

  constructor(entry: Entry, ports: FlowPorts, ended: () => void) {
    this.entry = entry
    this.#ports = ports
    this.#ended = ended
    this.outcome = new Promise(resolve => {
      this.#settle = resolve
    })
  }

  /** Resolves with the address for the browser; undefined: the server gave tokens without one. */
  async begin(): Promise<string> {
    await this.#listen()
    if (this.#over) this.#close() // the end came before there was anything to close
    this.touch()
    let address: URL | undefined
    const own = {
      redirectToAuthorization(url: URL) {
        address = url
      }
    }
    const result = await this.#auth(own, await this.#challenge())
    if (result === 'AUTHORIZED' || !address) throw new Error('the server did not name a page for the login')
    if (!/^https?:$/.test(address.protocol)) throw new Error('the page for the login has an address that is none')
    return address.href
  }

  /** Somebody waits, or has asked. */
  touch(): void {
    clearTimeout(this.#idle)
    if (this.#over) return
    this.#idle = setTimeout(() => this.end('nobody waited for the login any more'), this.#ports.idleMs)
    this.#idle.unref()
  }

  end(problem?: string): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#idle)
    this.#close()
    this.#settle(problem)
    this.#ended()
  }

  #close(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
  }

  async #listen(): Promise<void> {
    const server = createServer((request, reply) => {
      const [target = '', base] = [request.url, 'http://127.0.0.1']
      const url = URL.canParse(target, base) ? new URL(target, base) : undefined // any page of a browser may ask for `//`
      if (request.method !== 'GET' || url?.pathname !== '/callback') {
        reply.writeHead(404).end()
        return
      }
      if (!same(url.searchParams.get('state') ?? '', this.#state)) {
        reply.writeHead(400, headers).end(page('This address does not belong to a login that is under way.'))
        return
      }
      // Browsers ask for an address twice, and a code is taken once.
      this.#finishing ??= this.#finish(url.searchParams)
      void this.#finishing.then(problem => {
        reply
          .writeHead(200, headers)
          .end(page(problem === undefined ? 'Signed in. You can close this window.' : 'The login failed. You can close this window.'))
        reply.once('close', () => this.end(problem))
        if (reply.destroyed) this.end(problem)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    server.unref()
    this.#server = server
    this.#redirect = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  }

  /** Why it failed. */
  async #finish(answer: URLSearchParams): Promise<string | undefined> {
    const refused = answer.get('error')
    if (refused !== null) return `the login was refused: ${headOf(answer.get('error_description') ?? refused, 300)}`
    const code = answer.get('code')
    if (code === null) return 'the answer of the login holds no code'
    const issuer = answer.get('iss')
    const known = this.#discovery?.authorizationServerMetadata?.issuer
    if (issuer !== null && known !== undefined && issuer !== known) return 'the answer of the login comes from another server'
    try {
      await this.#auth({ redirectToAuthorization() {} }, { authorizationCode: code })
      const { book, isThere } = this.#ports
      if (!(await isThere(this.entry))) return `the MCP server ${this.entry.name} was removed meanwhile`
      const found = { tokens: this.#tokens, client: this.#client, discovery: this.#discovery }
      const isKept = await book.locked(this.entry, async () => {
        if (this.#over) return false
        await book.write(this.entry, JSON.parse(JSON.stringify(found)))
        return true
      })
      if (!isKept) return 'the login was over before'
    } catch (error) {
      return `the code of the login was not taken: ${reasonOf(error)}`
    }
    this.#ports.authorized(this.entry)
    return undefined
  }

  /** Where the server's refusal says that its metadata is, and the scope that it asks for; what says nothing leaves the usual places. */
  async #challenge(): Promise<{ resourceMetadataUrl?: URL; scope?: string }> {
    const { url, headers, transport } = this.entry.config as RemoteConfig
    const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/sdk/client/auth.js')
    const asked = transport === 'sse' ? { headers: { ...headers, accept: 'text/event-stream' } } : ping(headers)
    try {
      const reply = await this.#ports.fetch(url, { ...asked, signal: AbortSignal.timeout(challengeMs) })
      await reply.body?.cancel()
      const { resourceMetadataUrl, scope } = reply.status === 401 ? extractWWWAuthenticateParams(reply) : {}
      return { ...(resourceMetadataUrl && { resourceMetadataUrl }), ...(scope !== undefined && { scope }) }
    } catch {
      return {} // whoever asks for the metadata hears of it
    }
  }

  async #auth(
    own: Pick<OAuthClientProvider, 'redirectToAuthorization'>,
    asked: { authorizationCode?: string; resourceMetadataUrl?: URL; scope?: string }
  ) {
    const { auth } = await import('@modelcontextprotocol/sdk/client/auth.js')
    const limit = AbortSignal.timeout(requestMs)
    const provider: OAuthClientProvider = {
      ...own,
      redirectUrl: this.#redirect,
      clientMetadata: {
        client_name: clientName,
        redirect_uris: [this.#redirect],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none'
      },
      state: () => this.#state,
      clientInformation: () => this.#client,
      saveClientInformation: client => {
        this.#client = client
      },
      tokens: () => undefined,
      saveTokens: tokens => {
        this.#tokens = tokens
      },
      saveCodeVerifier: verifier => {
        this.#verifier = verifier
      },
      codeVerifier: () => this.#verifier,
      discoveryState: () => this.#discovery,
      saveDiscoveryState: state => {
        this.#discovery = state
      }
    }
    return await auth(provider, {
      serverUrl: canonicalUrl(this.entry.config as RemoteConfig),
      fetchFn: (url, init) => this.#ports.fetch(url, { ...init, signal: limit }),
      ...asked
    })
  }
}

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'",
  connection: 'close'
}
const page = (words: string) => `<!doctype html><meta charset="utf-8"><title>svc-code</title><p>${words}</p>`

export function reasonOf(error: unknown): string {
  const faults = faultsOf(error)
  const { message, errorCode = 'without a reason' } = error as Error & { readonly errorCode?: string }
  return headOf(faults === undefined ? message || errorCode : `what the server says of its login cannot be used (${faults})`, 300)
}

function same(...texts: [string, string]): boolean {
  const [given, wanted] = texts.map(text => Buffer.from(text)) as [Buffer, Buffer]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}
