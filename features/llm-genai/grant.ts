/** One question to a token service: a signed assertion (RFC 7523) or a refresh token (RFC 6749, section 6) for an access token. */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { firstAbort, headOf, redactText } from '../../kernel/index.ts'
import { parseJson, readText, recordOf, TokenProblem, transportError, type Upstream, withoutSecrets } from '../llm/index.ts'
import { type KeyFile, KeyFileProblem, type ServiceAccount } from './key-file.ts'
import { cloudScope } from './names.ts'

/** What a token service gave. */
export interface Grant {
  readonly token: string
  /** Seconds from the moment of the answer. */
  readonly expires_in: number
}

/** Whom to ask, and when it is. */
export interface GrantParts {
  readonly upstream: Pick<Upstream, 'postForm'>
  readonly now: () => Date
}

const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const LIFE_S = 3600
/** Token services refuse assertions from the future; a clock that is a little fast must not matter. */
const BACKDATE_S = 30
const TIMEOUT_MS = 30_000

/** Rejects with TokenProblem or KeyFileProblem, both without a word of the key; after an abort with the signal's reason. */
export async function askForToken(key: KeyFile, { upstream, now }: GrantParts, signal: AbortSignal): Promise<Grant> {
  const host = new URL(key.token_uri).host
  const fields = await fieldsOf(key, now())
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  const { signal: until, end } = firstAbort(signal, timeout)
  const reply = await upstream.postForm(key.token_uri, fields, {}, until).catch((error: unknown) => {
    end()
    signal.throwIfAborted()
    if (timeout.aborted) throw unreachable(`the token service ${host} did not answer within ${TIMEOUT_MS / 1000} s`)
    throw new TokenProblem(transportError(error, `the token service ${host}`), error)
  })
  const { status } = reply
  const said = recordOf(parseJson(await readText(reply.body).finally(end))) // a page of a proxy says nothing: the status says more
  if (status >= 200 && status <= 299) {
    const { access_token: token, expires_in } = said
    if (typeof token !== 'string' || token === '') throw unreachable(`the token service ${host} answered without an access token`)
    const life = Number(expires_in ?? LIFE_S)
    return { token, expires_in: Number.isFinite(life) && life > 0 ? life : LIFE_S }
  }
  if (status >= 500 || status === 408 || status === 429) throw unreachable(`the token service ${host} answered HTTP ${status}`, status)
  throw new KeyFileProblem(`the token service ${host} refused its key file (${[`HTTP ${status}`, ...wordsOf(said, fields)].join(', ')})`)
}

/** Fields of the question. */
type Sent = Readonly<Record<string, string>>

async function fieldsOf(key: KeyFile, now: Date): Promise<Sent> {
  if (key.type === 'service_account') return { grant_type: JWT_GRANT, assertion: await assertionOf(key, now) }
  const { client_id, client_secret, refresh_token } = key
  return { grant_type: 'refresh_token', client_id, client_secret, refresh_token }
}

const signed = promisify(sign)

async function assertionOf({ client_email, private_key, private_key_id, token_uri }: ServiceAccount, now: Date): Promise<string> {
  const iat = Math.floor(now.getTime() / 1000) - BACKDATE_S
  const header = { alg: 'RS256', typ: 'JWT', ...(private_key_id && { kid: private_key_id }) }
  const claims = { iss: client_email, scope: cloudScope, aud: token_uri, iat, exp: iat + LIFE_S }
  const text = [header, claims].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  // In a thread of its own: a long key takes its time.
  const signature = await signed('RSA-SHA256', Buffer.from(text), rsaKey(private_key)).catch(() => {
    throw new KeyFileProblem('the private_key of its key file cannot sign')
  })
  return `${text}.${signature.toString('base64url')}`
}

function rsaKey(pem: string): KeyObject {
  let key: KeyObject | undefined
  try {
    key = createPrivateKey(pem)
  } catch {
    // Said below; the library's words may quote the key.
  }
  if (key?.asymmetricKeyType !== 'rsa') throw new KeyFileProblem('the private_key of its key file is no RSA key')
  return key
}

function unreachable(message: string, status?: number): TokenProblem {
  return new TokenProblem({
    code: 'provider.connection_error',
    name: 'TokenServiceError',
    message,
    retryable: true,
    ...(status !== undefined && { status })
  })
}

/** What the service says of the refusal, with what was sent taken out. */
function wordsOf(
  { error, error_description }: Readonly<Record<string, unknown>>,
  { grant_type: _, client_id: _id, ...sent }: Sent
): string[] {
  return [error, error_description].flatMap(text => {
    if (typeof text !== 'string' || text === '') return []
    return [headOf(redactText(withoutSecrets(text.replace(/\s+/g, ' '), Object.values(sent))), 200)]
  })
}
