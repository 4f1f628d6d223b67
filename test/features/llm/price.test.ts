/** Prices of models and what tokens cost. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costOf, modelsSection, totalCost } from '../../../features/llm/index.ts'
import { priceOf } from '../../../features/llm/price.ts'
import { problems } from '../../../kernel/index.ts'

const record = { provider: 'p', model: 'm', max_context_size: 1000 }
const cost = { input: 2, output: 10 }
const usage = { inputOther: 1_000_000, output: 100_000, inputCacheRead: 500_000, inputCacheCreation: 100_000 }

test('cached input has its own price, or that of input', () => {
  assert.equal(costOf(usage, cost), 2 + 1 + 1 + 0.2)
  assert.equal(costOf(usage, { ...cost, cache_read: 0.2, cache_write: 2.5 }), 2 + 1 + 0.1 + 0.25)
})

test('a total sums the models with a price, without digits of binary fractions, and is absent when no price is known', () => {
  const prices: Record<string, typeof cost> = { a: { input: 0.1, output: 0 }, b: { input: 0.2, output: 0 }, free: { input: 0, output: 0 } }
  const total = (...aliases: string[]) =>
    totalCost(Object.fromEntries(aliases.map(alias => [alias, { ...usage, inputCacheRead: 0, inputCacheCreation: 0 }])), id => prices[id])

  assert.equal(total('a', 'b', 'unknown'), 0.3)
  assert.equal(total('free'), 0)
  assert.equal(total('unknown'), undefined)
  assert.equal(total(), undefined)
})

test('the price is the one of the record, overrides win, packs bring their own', () => {
  const models = { a: { ...record, cost }, b: { ...record, cost, overrides: { cost: { input: 1, output: 1 } } }, c: record }
  const brought = { alias: 'd', provider_id: 'd', protocol: 'd', name: 'd', display_name: 'D', max_context_size: 1, capabilities: [], cost }
  const price = (alias: string) => priceOf(alias, { models, contributed: [brought] })

  assert.deepEqual(
    [price('a'), price('b'), price('c'), price('d'), price('e')],
    [cost, { input: 1, output: 1 }, undefined, cost, undefined]
  )
})

test('a price is a pair of numbers that are not negative', () => {
  const paths = (price: unknown) => problems(modelsSection.schema, { m: { ...record, cost: price } }).map(({ path }) => path)

  assert.deepEqual(paths({ ...cost, cache_read: 0 }), [])
  assert.deepEqual(paths({ input: -1, output: 1 }), ['m.cost.input'])
  assert.deepEqual(paths({ input: 1 }), ['m.cost.output'])
})
