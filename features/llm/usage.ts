/** Tokens that were spent. */
import { named, type Static, Type } from '../../kernel/index.ts'

/** Tokens of one request, or of several. `inputOther` is the uncached part of the input. */
export const TokenUsage = named(
  'TokenUsage',
  Type.Object({
    inputOther: Type.Number(),
    output: Type.Number(),
    inputCacheRead: Type.Number(),
    inputCacheCreation: Type.Number()
  })
)
export type TokenUsage = Readonly<Static<typeof TokenUsage>>

export const noUsage: TokenUsage = { inputOther: 0, output: 0, inputCacheRead: 0, inputCacheCreation: 0 }

export const sumUsage = (a: TokenUsage, b: TokenUsage): TokenUsage => ({
  inputOther: a.inputOther + b.inputOther,
  output: a.output + b.output,
  inputCacheRead: a.inputCacheRead + b.inputCacheRead,
  inputCacheCreation: a.inputCacheCreation + b.inputCacheCreation
})

/** By model alias, with what one of them spent now: an alias may be the name of something that every object has. */
export const addUsage = (spent: Readonly<Record<string, TokenUsage>>, model: string, usage: TokenUsage): Record<string, TokenUsage> => ({
  ...spent,
  [model]: sumUsage((Object.hasOwn(spent, model) && spent[model]) || noUsage, usage)
})

/** What was spent since it was `before`. */
export const usageSince = (before: TokenUsage, now: TokenUsage): TokenUsage => ({
  inputOther: now.inputOther - before.inputOther,
  output: now.output - before.output,
  inputCacheRead: now.inputCacheRead - before.inputCacheRead,
  inputCacheCreation: now.inputCacheCreation - before.inputCacheCreation
})
