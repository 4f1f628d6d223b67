/** What tokens cost. */
import type { ModelPrice } from './records.ts'
import type { ModelTable } from './resolve.ts'
import type { TokenUsage } from './usage.ts'

/** Price of an alias: of its record with the `overrides` over it, else what the pack says that brings the model along. */
export function priceOf(alias: string, { models, contributed }: Pick<ModelTable, 'models' | 'contributed'>): ModelPrice | undefined {
  if (!Object.hasOwn(models, alias)) return contributed.find(model => model.alias === alias)?.cost
  const { cost, overrides } = models[alias]!
  return overrides?.cost ?? cost
}

/** USD of some tokens. */
export function costOf(usage: TokenUsage, price: ModelPrice): number {
  const { input, output, cache_read = input, cache_write = input } = price
  const { inputOther, inputCacheRead, inputCacheCreation } = usage
  return (inputOther * input + usage.output * output + inputCacheRead * cache_read + inputCacheCreation * cache_write) / 1_000_000
}

/** USD over models; what nobody knows the price of is left out. Undefined when no price is known. */
export function totalCost(
  usage: Readonly<Record<string, TokenUsage>>,
  price: (alias: string) => ModelPrice | undefined
): number | undefined {
  const costs = Object.entries(usage).flatMap(([alias, spent]) => {
    const known = price(alias)
    return known ? [costOf(spent, known)] : []
  })
  // Sums of binary fractions carry digits that nobody was charged.
  return costs.length === 0 ? undefined : Number(costs.reduce((sum, cost) => sum + cost, 0).toFixed(12))
}
