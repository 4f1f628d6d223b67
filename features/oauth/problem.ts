/** Why an account could not be asked or refused, as a text that holds no secret. */
import { oneLine, recordOf } from '../llm/index.ts'

const MAX_CHARACTERS = 300

interface ProblemFacts {
  /** HTTP status; absent when there was no answer. */
  readonly status?: number
  /** Code of the answer's `error` field (RFC 6749 section 5.2, RFC 8628 section 3.5). */
  readonly error?: string
  /** Nobody was asked: a setting is missing or forbids it. */
  readonly unset?: boolean
  readonly cause?: unknown
}

/** A failed question to the authorization server or the account service. The message may be shown. */
export class AccountProblem extends Error {
  readonly status: number | undefined
  readonly error: string | undefined
  readonly #unset: boolean

  constructor(message: string, { status, error, unset = false, cause }: ProblemFacts = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'AccountProblem'
    this.status = status
    this.error = error
    this.#unset = unset
  }

  /** Worth another try: no answer, too many requests, a fault of the server. */
  get transient(): boolean {
    if (this.status === undefined) return !this.#unset
    return this.status === 429 || this.status >= 500
  }

  /** The grant is refused for good, in the one word for it (RFC 6749, section 5.2): a status alone may be that of a proxy on the way. */
  get rejected(): boolean {
    return this.error === 'invalid_grant'
  }
}

/** What an error answer says, in the order in which services use to say it; otherwise a hint for its status. */
export function failureText(status: number, body: unknown): string {
  const said = recordOf(body)
  const { error, errors } = said
  const first = Array.isArray(errors) ? errors[0] : undefined
  const texts = [said.error_description, said.message, said.detail, error, recordOf(error).message, first, recordOf(first).message]
  const text = texts.find((candidate): candidate is string => typeof candidate === 'string' && candidate.trim() !== '')
  if (text !== undefined) return oneLine(text, MAX_CHARACTERS)
  if (status === 401) return 'the login was refused; log in again'
  if (status === 404) return 'the account service does not know this request'
  return `the account service answered HTTP ${status}`
}
