/** Questions to the authorization server (RFC 8628, RFC 6749 section 6) and to the account service. Nothing is stored here. */
import { firstAbort, redactText } from '../../kernel/index.ts'
import {
  isHttpUrl,
  isTransportError,
  OutboundRefused,
  parseJson,
  readText,
  secretsSent,
  type Upstream,
  whyUnreachable,
  withoutSecrets
} from '../llm/index.ts'
import { isTable } from '../providers/index.ts'
import type { Credential } from './contract.ts'
import { readCredential } from './credential.ts'
import { AccountProblem, failureText } from './problem.ts'

/** What the authorization server hands out for one login. */
export interface DeviceCode {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete: string
  /** Seconds. */
  readonly expires_in: number
  /** Seconds. */
  readonly interval: number
}

export interface AccountServiceParts {
  readonly upstream: Pick<Upstream, 'get' | 'postForm'>
  readonly now: () => Date
  /** User agent and device headers. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
}

type Table = Readonly<Record<string, unknown>>
interface Answer {
  readonly status: number
  readonly text: string
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const LOGIN_TIMEOUT_MS = 30_000
const REFRESH_TIMEOUT_MS = 10_000
const LIST_TIMEOUT_MS = 10_000
const LIMIT_BYTES = 1024 * 1024
const DEFAULT_LIFE_S = 900
const DEFAULT_INTERVAL_S = 5
/** Longer than any login lasts. */
const MAX_INTERVAL_S = 900

/** Every method rejects with AccountProblem, after an abort with the signal's reason. */
export class AccountService {
  readonly #parts: AccountServiceParts

  constructor(parts: AccountServiceParts) {
    this.#parts = parts
  }

  async deviceCode(oauth_host: string, client_id: string, signal: AbortSignal): Promise<DeviceCode> {
    const url = `${oauth_host}/api/oauth/device_authorization`
    const body = await this.#form(url, { client_id }, [], LOGIN_TIMEOUT_MS, signal)
    const { device_code, user_code, verification_uri_complete, verification_uri } = body
    // A client opens the address in its own window: no scheme that runs there.
    if (!text(device_code) || !text(user_code) || !isHttpUrl(verification_uri_complete)) {
      throw new AccountProblem(`${hostOf(url)} answered without a device code`, { status: 200 })
    }
    return {
      device_code,
      user_code,
      verification_uri_complete,
      verification_uri: isHttpUrl(verification_uri) ? verification_uri : (verification_uri_complete.split('?')[0] ?? ''),
      expires_in: positive(body.expires_in) ?? DEFAULT_LIFE_S,
      interval: Math.min(positive(body.interval) ?? DEFAULT_INTERVAL_S, MAX_INTERVAL_S)
    }
  }

  /** One poll. `error` of the problem is the state of the login: `authorization_pending` and so on. */
  async deviceToken(oauth_host: string, client_id: string, device_code: string, signal: AbortSignal): Promise<Credential> {
    const url = `${oauth_host}/api/oauth/token`
    const fields = { grant_type: DEVICE_GRANT, device_code, client_id }
    return this.#credential(url, await this.#form(url, fields, [device_code], LOGIN_TIMEOUT_MS, signal))
  }

  async refresh(oauth_host: string, client_id: string, refresh_token: string, signal: AbortSignal): Promise<Credential> {
    const url = `${oauth_host}/api/oauth/token`
    const fields = { grant_type: 'refresh_token', refresh_token, client_id }
    return this.#credential(url, await this.#form(url, fields, [refresh_token], REFRESH_TIMEOUT_MS, signal), refresh_token)
  }

  /** JSON of `{base_url}{path}` with a bearer token. */
  async read(base_url: string, path: string, access_token: string, signal: AbortSignal, timeout_ms = LIST_TIMEOUT_MS): Promise<unknown> {
    const url = `${base_url}${path}`
    const authorization = `Bearer ${access_token}`
    const { status, text: said } = await this.#ask(url, timeout_ms, signal, async (headers, until) =>
      this.#parts.upstream.get(url, { ...headers, authorization }, until)
    )
    // The answer is shown, and models are called what it calls them: nothing of the token may stand in it.
    const failed = status < 200 || status > 299
    const body = parseJson(withoutSecrets(said, failed ? [access_token] : secretsSent(url, { authorization })))
    if (failed) throw new AccountProblem(redactText(failureText(status, body)), { status })
    if (body === undefined) throw new AccountProblem(`${hostOf(url)} answered with something that is not JSON`, { status })
    return body
  }

  #credential(url: string, body: Table, refresh_token?: string): Credential {
    const credential = readCredential(body, this.#parts.now(), refresh_token)
    if (!credential) throw new AccountProblem(`${hostOf(url)} answered without a usable token`, { status: 200 })
    return credential
  }

  async #form(
    url: string,
    fields: Readonly<Record<string, string>>,
    secrets: readonly string[],
    timeout_ms: number,
    signal: AbortSignal
  ): Promise<Table> {
    const { status, text: answer } = await this.#ask(url, timeout_ms, signal, async (headers, until) =>
      this.#parts.upstream.postForm(url, fields, headers, until)
    )
    const body = parseJson(answer)
    // Some servers tell the state of a login with HTTP 200.
    const error = isTable(body) && text(body.error) ? body.error : undefined
    if (status >= 200 && status <= 299 && error === undefined) return isTable(body) ? body : {}
    const said = redactText(failureText(status, parseJson(withoutSecrets(answer, secrets))))
    throw new AccountProblem(`${hostOf(url)} answered HTTP ${status}: ${said}`, { status, ...(error !== undefined && { error }) })
  }

  async #ask(
    url: string,
    timeout_ms: number,
    signal: AbortSignal,
    send: (headers: Readonly<Record<string, string>>, until: AbortSignal) => ReturnType<Upstream['get']>
  ): Promise<Answer> {
    signal.throwIfAborted()
    const headers = await this.#parts.headers()
    const timeout = AbortSignal.timeout(timeout_ms)
    const { signal: until, end } = firstAbort(signal, timeout)
    try {
      const { status, body } = await send(headers, until)
      const said = await readText(body, LIMIT_BYTES, timeout_ms)
      if (!signal.aborted && !timeout.aborted) return { status, text: said }
      throw new Error('the answer was not read to its end')
    } catch (error) {
      signal.throwIfAborted()
      if (timeout.aborted) throw new AccountProblem(`${hostOf(url)} did not answer within ${timeout_ms / 1000} s`, { cause: error })
      if (error instanceof OutboundRefused) throw new AccountProblem(error.message, { cause: error, unset: true })
      const why = isTransportError(error) ? `: ${whyUnreachable(error)}` : ` (${(error as Error).name})`
      throw new AccountProblem(`${hostOf(url)} could not be reached${why}`, { cause: error })
    } finally {
      end()
    }
  }
}

function text(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Rounded up; undefined for what is no number above 0. */
function positive(value: unknown): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  const number = Math.ceil(Number(value))
  return Number.isFinite(number) && number > 0 ? number : undefined
}

/** Name and port only: a URL may carry a password. */
function hostOf(url: string): string {
  return new URL(url).host
}
