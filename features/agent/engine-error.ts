/** Engine errors: strings that travel in events, never REST codes. */
import { AppError } from '../../kernel/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider } from '../llm/index.ts'
import type { ErrorInfo } from './contract.ts'
import { TurnFailure } from './hooks.ts'

const codes: ReadonlyMap<number, string> = new Map([
  [NoProvider.code, 'model.not_configured'],
  [NoCredential.code, 'auth.token_missing'],
  [CredentialRejected.code, 'auth.token_unauthorized'],
  [ModelUnresolved.code, 'model.not_found']
])

/** Engine error of an exception. Unexpected ones go to the log and leave as a fixed text. */
export function describe(error: unknown, unexpected: (error: unknown) => void): ErrorInfo {
  if (error instanceof TurnFailure) return error.info
  if (!AppError.is(error)) {
    unexpected(error)
    return { code: 'internal', message: 'the turn failed unexpectedly', retryable: false }
  }
  return { code: codes.get(error.spec.code) ?? 'internal', message: error.message, name: error.name, retryable: false }
}
