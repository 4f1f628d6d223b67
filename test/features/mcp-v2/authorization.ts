/** An MCP server that wants a login, and its authorization server: discovery, registration, PKCE, tokens that end. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { testMcpServer } from '../../helpers/mcp-server.ts'

export interface Guarded {
  /** Of the MCP server. */
  readonly url: string
  /** Grants that were asked for, in order. */
  readonly grants: string[]
  /** Redirect addresses of the clients that registered. */
  readonly registered: string[]
  /** Every access token so far is refused from now on. */
  expire(): void
  /** Refresh tokens are refused, too. */
  revoke(): void
  /** Path of the metadata of the MCP server; a refusal names it. */
  metadata: string
  /** Parts of the metadata of the authorization server that are different. */
  odd: Readonly<Record<string, unknown>>
  /** Seconds for which the next tokens hold. */
  lifetime: number
}

export async function guarded(t: TestContextLike): Promise<Guarded> {
  const valid = new Set<string>()
  const refresh = new Set<string>()
  const challenges = new Map<string, { challenge: string; redirect: string }>()
  const clients = new Map<string, string[]>()
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  let made = 0
  const state: Guarded = {
    url: '',
    grants: [],
    registered: [],
    metadata: '/.well-known/oauth-protected-resource/mcp',
    odd: {},
    lifetime: 3600,
    expire: () => valid.clear(),
    revoke: () => refresh.clear()
  }
  const issue = () => {
    const access_token = `access-${++made}`
    const refresh_token = `refresh-${made}`
    valid.add(access_token)
    refresh.add(refresh_token)
    return { access_token, refresh_token, token_type: 'Bearer', expires_in: state.lifetime }
  }
  const server = createServer((request, reply) => {
    const base = `http://${request.headers.host}`
    const { pathname, searchParams } = new URL(request.url ?? '', base)
    const json = (status: number, value: unknown) =>
      void reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    void (async () => {
      if (pathname === state.metadata) json(200, { resource: `${base}/mcp`, authorization_servers: [base] })
      else if (pathname.startsWith('/.well-known/oauth-authorization-server')) {
        json(200, {
          issuer: base,
          authorization_endpoint: `${base}/authorize`,
          token_endpoint: `${base}/token`,
          registration_endpoint: `${base}/register`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256'],
          ...state.odd
        })
      } else if (pathname === '/register') {
        const client = JSON.parse(await bodyOf(request)) as { redirect_uris: string[] }
        const client_id = `client-${++made}`
        clients.set(client_id, client.redirect_uris)
        state.registered.push(...client.redirect_uris)
        json(201, { ...client, client_id })
      } else if (pathname === '/authorize') {
        const redirect = searchParams.get('redirect_uri') ?? ''
        const known = clients.get(searchParams.get('client_id') ?? '')?.includes(redirect)
        const target = new URL(redirect)
        target.searchParams.set('state', searchParams.get('state') ?? '')
        if (!known || searchParams.get('deny') === '1') target.searchParams.set('error', 'access_denied')
        else {
          const code = `code-${++made}`
          challenges.set(code, { challenge: searchParams.get('code_challenge') ?? '', redirect })
          target.searchParams.set('code', code)
        }
        reply.writeHead(302, { location: target.href }).end()
      } else if (pathname === '/token') {
        const form = new URLSearchParams(await bodyOf(request))
        const grant = form.get('grant_type') ?? ''
        state.grants.push(grant)
        if (grant === 'refresh_token') {
          if (refresh.delete(form.get('refresh_token') ?? '')) json(200, issue())
          else json(400, { error: 'invalid_grant' })
          return
        }
        const found = challenges.get(form.get('code') ?? '')
        challenges.delete(form.get('code') ?? '')
        const proof = createHash('sha256')
          .update(form.get('code_verifier') ?? '')
          .digest('base64url')
        if (found && proof === found.challenge && form.get('redirect_uri') === found.redirect) json(200, issue())
        else json(400, { error: 'invalid_grant' })
      } else if (!valid.has(request.headers.authorization?.replace('Bearer ', '') ?? '')) {
        reply.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${base}${state.metadata}", scope="tools"` }).end()
      } else {
        let transport = sessions.get(String(request.headers['mcp-session-id']))
        if (!transport) {
          const fresh = new StreamableHTTPServerTransport({
            sessionIdGenerator: () => `s${sessions.size}`,
            onsessioninitialized: id => void sessions.set(id, fresh)
          })
          transport = fresh
          await testMcpServer('guarded').connect(fresh as never)
        }
        await transport.handleRequest(request, reply)
      }
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` })
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** What the user's browser does with the address of a login: follows it to the callback. Answers the page. */
export async function browse(address: string, change: (url: URL) => void = () => {}): Promise<string> {
  const url = new URL(address)
  change(url)
  const sent = await fetch(url, { redirect: 'manual' })
  const back = await fetch(sent.headers.get('location') ?? '')
  return await back.text()
}
