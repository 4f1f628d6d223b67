/** What providers and models may be called: routes name them in their path, where a character may take nine bytes. */
import { MODEL_NAME } from './contract.ts'

const idRule = /^[\p{L}\p{N}][\p{L}\p{N}\-_ ]*$/u
const modelRule = new RegExp(MODEL_NAME.pattern)
export const MAX_ID_LENGTH = 500

/** True for ids that a provider may have (contract 1, Provider item); letters of any script, at most 500 UTF-16 units. */
export function isProviderId(id: string): boolean {
  return id.length <= MAX_ID_LENGTH && idRule.test(id)
}

/** True for names that a model may have; what a list calls otherwise is left out. */
export function isModelName(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && name.length <= MODEL_NAME.maxLength && modelRule.test(name)
}

/** True where one of these names of a model says that it makes embeddings. */
export function saysEmbedding(...names: readonly unknown[]): boolean {
  return names.some(name => typeof name === 'string' && /embed/i.test(name))
}

/** True for text that says something and that the configuration file can hold. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && !/\p{Cs}/u.test(value)
}
