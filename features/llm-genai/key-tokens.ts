/** Access tokens of key files: one question for all who ask, kept until shortly before their end. */
import { untilAborted } from '../../kernel/index.ts'
import { authError, type ResolvedModel, type TokenOptions, TokenProblem } from '../llm/index.ts'
import { askForToken, type GrantParts } from './grant.ts'
import { type KeyFile, KeyFileProblem, readKeyFile, stampOf } from './key-file.ts'
import { payerHeader } from './names.ts'

interface Held {
  readonly stamp: string
  readonly key: KeyFile
  token?: string
  /** Epoch ms: end of the token, and when another one is due. */
  ends?: number
  due?: number
  asking?: Promise<string>
}

const MARGIN_S = 300
/** Key files that are remembered; the oldest goes first. */
const CAPACITY = 64

/** The tokens of a process, by key file. */
export class KeyTokens {
  readonly #parts: GrantParts
  readonly #held = new Map<string, Held>()
  readonly #closing = new AbortController()

  constructor(parts: GrantParts) {
    this.#parts = parts
  }

  /** The model with its access token, and with project and paying project of the key file where it has none. Rejects with TokenProblem. */
  async authorize(model: ResolvedModel, given: TokenOptions): Promise<ResolvedModel> {
    try {
      const held = await this.#open(model.key_file ?? '')
      const { key } = held
      const api_key = await this.#token(held, given)
      const project = model.project ?? key.project
      const payer = key.type === 'authorized_user' && key.payer
      const headers = payer ? { [payerHeader]: payer, ...model.headers } : model.headers
      return { ...model, headers, api_key, bearer: true, ...(project && { project }) }
    } catch (error) {
      if (!(error instanceof KeyFileProblem)) throw error
      throw new TokenProblem(authError(`provider ${model.provider_id}: ${error.message}`), error)
    }
  }

  /** Whom a key file is shown to; undefined when it cannot be used. */
  async tokenUrl(key_file: string): Promise<string | undefined> {
    try {
      return (await this.#open(key_file)).key.token_uri
    } catch (error) {
      if (error instanceof KeyFileProblem) return undefined
      throw error
    }
  }

  /** Ends the questions that are open. */
  close(): void {
    this.#closing.abort(new Error('the server stops'))
  }

  /** The key file as it is now: read again when it changed. */
  async #open(key_file: string): Promise<Held> {
    const stamp = await stampOf(key_file)
    const known = this.#held.get(key_file)
    if (known?.stamp === stamp) return known
    const held = { stamp, key: await readKeyFile(key_file) }
    const meanwhile = this.#held.get(key_file)
    if (meanwhile?.stamp === stamp) return meanwhile
    this.#held.delete(key_file)
    this.#held.set(key_file, held)
    const [oldest] = this.#held.keys()
    if (this.#held.size > CAPACITY && oldest !== undefined) this.#held.delete(oldest)
    return held
  }

  async #token(held: Held, { force = false, refused, signal }: TokenOptions): Promise<string> {
    signal?.throwIfAborted()
    const now = this.#parts.now().getTime()
    const { token, ends = 0, due = 0 } = held
    const lives = token !== undefined && now < ends && !(force && (refused === undefined || refused === token))
    if (lives && now < due) return token
    try {
      return await untilAborted(this.#ask(held), signal)
    } catch (error) {
      if (lives && error instanceof TokenProblem && !signal?.aborted) return token // it is not over yet
      throw error
    }
  }

  #ask(held: Held): Promise<string> {
    held.asking ??= this.#renew(held).finally(() => {
      delete held.asking
    })
    return held.asking
  }

  async #renew(held: Held): Promise<string> {
    const { token, expires_in } = await askForToken(held.key, this.#parts, this.#closing.signal)
    const now = this.#parts.now().getTime()
    held.token = token
    held.ends = now + expires_in * 1000
    held.due = held.ends - Math.min(MARGIN_S, expires_in / 2) * 1000
    return token
  }
}
