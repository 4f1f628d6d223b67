/** A token service for tests: real HTTP; assertions count only with the signature of the key and the right claims. */
import { generateKeyPairSync, verify } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TokenAnswer {
  readonly status?: number
  readonly body?: unknown
  /** Resets the connection. */
  readonly cut?: true
  /** Answers when it resolves. */
  readonly after?: Promise<unknown>
}

export interface TokenRequest {
  readonly form: Readonly<Record<string, string>>
  /** What an assertion said, when it was a good one. */
  readonly claims?: Readonly<Record<string, unknown>>
}

export interface FakeTokenService {
  readonly token_uri: string
  readonly asked: readonly TokenRequest[]
  /** A key file for it: the text of `type: service_account` with the fake's key. */
  serviceAccount(more?: Readonly<Record<string, unknown>>): string
  authorizedUser(more?: Readonly<Record<string, unknown>>): string
  /** Answers of the requests to come, the last one repeats; good requests get tokens `cloud-token-<n>` without one. */
  answer(...script: readonly TokenAnswer[]): void
  /** Resolves when it was asked so often in all. */
  reached(count: number): Promise<void>
  close(): Promise<void>
}

const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' }
})

/** The private key in PEM form. */
export const privateKey: string = keys.privateKey
export const clientEmail = 'robot@project-1.example'
const user = { client_id: 'client-1', client_secret: 'client-secret-1', refresh_token: 'refresh-token-1' }

/** `now`: the clock by which assertions are judged. `token`: every token it gives; default `cloud-token-<n>`. */
export async function fakeTokenService(
  t: { after(fn: () => unknown): void },
  { now = () => Date.now(), token }: { readonly now?: () => number; readonly token?: string } = {}
): Promise<FakeTokenService> {
  const asked: TokenRequest[] = []
  const waiting: { count: number; resolve: () => void }[] = []
  let script: readonly TokenAnswer[] = []
  let played = 0
  let token_uri = ''

  const judged = (form: Readonly<Record<string, string>>): TokenRequest | string => {
    if (form.grant_type === 'refresh_token') {
      const known = Object.entries(user).every(([name, value]) => form[name] === value)
      return known ? { form } : 'Token has been revoked.'
    }
    if (form.grant_type !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 'unsupported grant'
    const [head = '', body = '', signature = ''] = (form.assertion ?? '').split('.')
    if (!verify('RSA-SHA256', Buffer.from(`${head}.${body}`), keys.publicKey, Buffer.from(signature, 'base64url'))) {
      return `Invalid JWT Signature of ${form.assertion}`
    }
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as Record<string, unknown>
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>
    const seconds = now() / 1000
    const { iss, aud, iat, exp, scope } = claims as { iss: string; aud: string; iat: number; exp: number; scope: string }
    const right =
      header.alg === 'RS256' &&
      header.kid === 'key-1' &&
      iss === clientEmail &&
      aud === token_uri &&
      iat <= seconds &&
      exp > seconds &&
      exp - iat <= 3600 &&
      scope.startsWith('https://')
    return right ? { form, claims } : 'wrong claims'
  }

  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString('utf8')))
      const verdict = judged(form)
      asked.push(typeof verdict === 'string' ? { form } : verdict)
      for (const entry of waiting.filter(({ count }) => asked.length >= count)) entry.resolve()
      const { status, body, cut, after } = script[Math.min(played++, script.length - 1)] ?? {}
      const good = { access_token: token ?? `cloud-token-${asked.length}`, expires_in: 3600, token_type: 'Bearer' }
      const bad = { error: 'invalid_grant', error_description: verdict }
      void Promise.resolve(after).then(() => {
        if (cut) {
          res.destroy()
          return
        }
        const refused = typeof verdict === 'string' && status === undefined
        res.writeHead(status ?? (refused ? 400 : 200), { 'content-type': 'application/json' })
        res.end(JSON.stringify(refused ? bad : { ...good, ...(body as object | undefined) }))
      })
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  token_uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  t.after(close)
  const account = { project_id: 'project-1', private_key_id: 'key-1', private_key: keys.privateKey, client_email: clientEmail }
  return {
    token_uri,
    asked,
    serviceAccount: more => JSON.stringify({ type: 'service_account', ...account, token_uri, ...more }),
    authorizedUser: more => JSON.stringify({ type: 'authorized_user', ...user, token_uri, quota_project_id: 'project-2', ...more }),
    answer(...next) {
      script = next
      played = 0
    },
    reached(count) {
      if (asked.length >= count) return Promise.resolve()
      return new Promise(resolve => waiting.push({ count, resolve }))
    },
    close
  }
}
