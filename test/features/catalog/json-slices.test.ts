/** JSON in slices: what JSON.parse says, without holding everybody else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseInSlices } from '../../../features/catalog/json-slices.ts'

const parse = (text: string) => parseInSlices(Buffer.from(text))
/** Makes a document long enough to be taken apart. */
const long = (value: unknown, indent?: number) =>
  JSON.stringify({ before: ' '.repeat(40_000), value, after: [' '.repeat(40_000)] }, null, indent)
const pad = ' '.repeat(70_000)

test('any document has the value that JSON.parse gives it', async () => {
  const check = async (value: unknown, indent: number) => {
    const text = long(value, indent)
    assert.deepEqual(await parse(text), JSON.parse(text))
  }
  await fc.assert(fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 2), check), { numRuns: 200 })
})

test('long objects and lists inside one another are taken apart', async () => {
  const wide = Array.from({ length: 3_000 }, (_, at) => ({ id: `m${at}`, name: 'a "quoted" \\ name \u{1f600}', limits: [1, 2] }))
  const deep = { a: { models: wide, list: [wide, 1, 'x'] }, ['__proto__']: { own: true }, b: 1 }
  const text = JSON.stringify(deep)
  const value = (await parse(text)) as Record<string, unknown>

  assert.deepEqual(value, JSON.parse(text))
  assert.ok(Object.hasOwn(value, '__proto__'))
})

test('what JSON.parse refuses is refused, however long', async () => {
  const broken = [
    `{"a":1${pad}`,
    `{"a":1,}${pad}`,
    `{"a":1 "b":2}${pad}`,
    `{"a" 1}${pad}`,
    `{a:1}${pad}`,
    `{,}${pad}`,
    `{"a":}${pad}`,
    `{"a":1}${pad}x`,
    `[1,]${pad}`,
    `[1 2]${pad}`,
    `["a]${pad}`,
    `[1}${pad}`,
    `{"a":[1,2}${pad}`,
    `{"a":tru}${pad}`,
    `{"a":"\\x"}${pad}`,
    pad,
    '',
    `x${pad}`
  ]
  for (const text of broken) {
    assert.throws(() => JSON.parse(text))
    await assert.rejects(parse(text), SyntaxError, text.trim())
  }
  assert.deepEqual(await parse(`${pad}{}${pad}`), {})
  assert.deepEqual(await parse(`[ ]${pad}`), [])
})

test('a piece that cannot be taken apart is refused when it is long', async () => {
  await assert.rejects(parse(JSON.stringify({ text: pad })), SyntaxError)
  await assert.rejects(parse(JSON.stringify([[[[[Array(40_000).fill(1)]]]]])), SyntaxError)
  await assert.rejects(parse('['.repeat(1_000_000)), SyntaxError)
})

test('others have their turn while a long document is read', async () => {
  const entry = { models: Object.fromEntries(Array.from({ length: 400 }, (_, at) => [at, { id: `m${at}`, text: 'x'.repeat(100) }])) }
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: 80 }, (_, at) => [at, entry])))
  let turns = 0
  let reading = true
  const count = () => {
    turns++
    if (reading) setImmediate(count)
  }
  setImmediate(count)

  await parse(text)
  reading = false

  assert.ok(turns > 1, `${turns} turns`)
})
