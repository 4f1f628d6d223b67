/** Bodies of model requests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUpstream, readText } from '../../../features/llm/index.ts'
import { jsonBody } from '../../../features/llm/json-body.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { resolvedModel } from '../../helpers/model.ts'

const base64 = 'QUJD'.repeat(100_000)
const values: Readonly<Record<string, unknown>> = {
  'small things': { text: 'Grüße "世界" 🙂\n', list: [1, null, true, { a: undefined }] },
  'lists of the body': { none: [], one: ['a'], holes: [undefined, null, () => 1], nested: [[], [[1]]], left: undefined, empty: {} },
  'a body of nothing': {},
  'a list': [1, 'two'],
  'a long picture': { messages: [{ image: base64 }, { url: `data:image/png;base64,${base64}`, again: base64 }] },
  'a long picture beside a long text': { messages: [{ image: base64, text: '世界'.repeat(50_000), more: 'line\n'.repeat(50_000) }] },
  'long texts that need escapes': { a: 'line\n'.repeat(50_000), b: '世界'.repeat(50_000), c: `${base64}"`, d: `${base64}\\` }
}
for (const [title, value] of Object.entries(values)) {
  test(`${title} are written as JSON writes them`, async () => {
    const written = Buffer.concat(await jsonBody(value)).toString('utf8')

    assert.equal(written, JSON.stringify(value))
  })
}

test('a long conversation is written while others have their turn', async () => {
  const messages = Array.from({ length: 4000 }, (_, n) => ({
    role: 'tool',
    tool_call_id: `call_${n}`,
    content: 'some text of a file\n'.repeat(50)
  }))
  let passes = 0
  const count = () => {
    passes++
    next = setImmediate(count)
  }
  let next = setImmediate(count)

  const pieces = await jsonBody({ messages })
  clearImmediate(next)

  assert.equal(Buffer.concat(pieces).toString('utf8'), JSON.stringify({ messages }))
  assert.ok(pieces.length < 100, `${pieces.length} pieces`)
  assert.ok(passes > 1, `${passes} passes of the event loop`)
})

test('halves of characters are replaced, what only looks like one is not', async () => {
  const value = { cut: 'x\ud83d', end: '\ude42 y', whole: '🙂', text: '\\ud83d and \\\\ud83d', both: '\\\ud83d' }

  const written = JSON.parse(Buffer.concat(await jsonBody(value)).toString('utf8'))

  assert.deepEqual(written, { ...value, cut: 'x\ufffd', end: '\ufffd y', both: '\\\ufffd' })
})

test('a request with a long picture arrives whole, with its length', async t => {
  const upstream = await fakeUpstream(t, [[{ text: 'ok' }]])
  const pool = createUpstream({})
  t.after(() => pool.close())
  const model = resolvedModel({ base_url: upstream.url })
  const body = { text: 'Grüße', images: [base64, base64.slice(4)] }

  const reply = await pool.post(model, '/x', body, {}, new AbortController().signal)

  const { body: arrived, headers } = await upstream.arrived(0)
  assert.deepEqual(arrived, body)
  assert.equal(Number(headers['content-length']), Buffer.byteLength(JSON.stringify(body)))
  assert.equal(headers['transfer-encoding'], undefined)
  assert.equal(reply.status, 200)
  await readText(reply.body)
})
