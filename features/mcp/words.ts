/** Why something failed, in words: the library tells what misses its schemas as a list in JSON. */
import { headOf } from '../../kernel/index.ts'

interface Issue {
  readonly path: readonly unknown[]
  readonly message: string
}

/** What is wrong with what came, when that is the reason. */
export function faultsOf(error: unknown): string | undefined {
  const { issues } = error as { readonly issues?: readonly Issue[] }
  return issues?.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
}

export function inWords(error: unknown): string {
  const faults = faultsOf(error)
  return faults === undefined ? (error as Error).message : `what the server answered cannot be used (${headOf(faults, 300)})`
}
