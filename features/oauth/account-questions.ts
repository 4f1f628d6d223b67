/** Questions about the account itself: a token, one answer, failures in-band. */

import type { Logger } from '../../kernel/index.ts'
import { withoutSecrets } from '../llm/index.ts'
import type { AccountService } from './account-service.ts'
import type { InBandError } from './contract.ts'
import type { Account } from './endpoint.ts'
import { AccountProblem } from './problem.ts'
import type { TokenStore } from './token-store.ts'

export interface QuestionParts {
  readonly service: Pick<AccountService, 'read'>
  readonly tokens: Pick<TokenStore, 'token'>
  readonly log: Pick<Logger, 'warn'>
  /** How long the account service may take for an answer, ms. */
  readonly timeout_ms: number
}

/** Asks `{base_url}{path}`; a token that is refused is renewed once and the question asked again. Rejects only after an abort. */
export async function askAccount<T>(
  account: Account | undefined,
  path: string,
  read: (answer: unknown) => T,
  { service, tokens, log, timeout_ms }: QuestionParts,
  signal: AbortSignal
): Promise<T | InBandError> {
  const sent: string[] = []
  try {
    const token = account && (await tokens.token(account, { signal }))
    if (!account || token === undefined) return { kind: 'error', message: 'not logged in' }
    const { base_url } = account
    if (base_url === undefined) return { kind: 'error', message: 'the base URL of the account service is not set' }
    const ask = (access: string) => {
      sent.push(access)
      return service.read(base_url, path, access, signal, timeout_ms)
    }
    const answer = await ask(token).catch(async (problem: unknown) => {
      if (!(problem instanceof AccountProblem) || problem.status !== 401) throw problem
      const renewed = await tokens.token(account, { force: true, refused: token, signal })
      if (renewed === undefined) throw problem
      return ask(renewed)
    })
    return read(answer)
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof AccountProblem)) throw error
    const { message, status } = error
    log.warn({ path, status }, 'the account service could not be asked')
    return { kind: 'error', message: withoutSecrets(message, sent), status }
  }
}
