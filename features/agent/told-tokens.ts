/** The size of a context as clients are told it. */
import type { ContextSize } from '../history/index.ts'

/** How the size of a context is told (`token_counting.strategy`). */
export type TokenStrategy = 'measured+estimated' | 'measured' | 'estimated'

/** The size of the context as it is told. With `measured+estimated` it is never below what was measured last. */
export function toldTokens({ measured, total, estimated }: ContextSize, strategy: TokenStrategy): number {
  return strategy === 'measured' ? measured : strategy === 'estimated' ? estimated : total
}
