/** Prices as model lists, registries and directories state them, read into what an alias record holds. */
import type { ModelPrice } from '../llm/index.ts'
import { isTable } from './tables.ts'

/** USD per million tokens; whatever claims more is a mistake. */
const MAX_PRICE = 1_000_000

type PriceField = { readonly cost?: ModelPrice }

/** `{ cost }` of a table `{ input, output, cache_read?, cache_write? }` in USD per million tokens; nothing unless both directions have a price. */
export function costField(cost: unknown): PriceField {
  return isTable(cost) ? priceField(cost.input, cost.output, cost.cache_read, cost.cache_write) : {}
}

/** The same of `{ prompt, completion, input_cache_read?, input_cache_write? }` in USD per token, numbers or their texts. */
export function pricingField(pricing: unknown): PriceField {
  if (!isTable(pricing)) return {}
  const { prompt, completion, input_cache_read, input_cache_write } = pricing
  return priceField(perMillion(prompt), perMillion(completion), perMillion(input_cache_read), perMillion(input_cache_write))
}

function priceField(input: unknown, output: unknown, cache_read: unknown, cache_write: unknown): PriceField {
  if (!isPrice(input) || !isPrice(output)) return {}
  return { cost: { input, output, ...(isPrice(cache_read) && { cache_read }), ...(isPrice(cache_write) && { cache_write }) } }
}

function perMillion(price: unknown): number | undefined {
  const text = typeof price === 'number' ? String(price) : price
  if (typeof text !== 'string' || !/^\d+(\.\d+)?(e[-+]?\d+)?$/i.test(text.trim())) return undefined
  return Number((Number(text) * 1_000_000).toPrecision(12)) // the binary fraction of a small price has digits that nobody asked for
}

function isPrice(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_PRICE
}
