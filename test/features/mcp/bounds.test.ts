/** What is shown of a server's configuration and results, and what is left out. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkConfig, redacted } from '../../../features/mcp/config.ts'
import { effective } from '../../../features/mcp/layers.ts'
import { resultOf } from '../../../features/mcp/results.ts'
import { png } from '../../helpers/png.ts'

test('a configuration that is shown holds neither password nor key, wherever they stand', () => {
  const shown = redacted({
    transport: 'http',
    url: 'https://someone:hidden1@example.com/mcp?api_key=hidden2&b=hidden3',
    headers: { 'x-key': 'hidden4', a: 'hidden5' }
  })
  assert.deepEqual(shown, { transport: 'http', url: 'https://example.com/mcp?api_key=***&b=***', headerKeys: ['a', 'x-key'] })
  const local = redacted({ transport: 'stdio', command: 'x', env: { Z: 'hidden', A: 'hidden' } })
  assert.deepEqual(local, { transport: 'stdio', command: 'x', envKeys: ['A', 'Z'] })
})

test('a key of a configuration that means nothing is dropped, also one that every object has', () => {
  const given = JSON.parse(
    '{ "command": "x", "note": "hidden", "constructor": "hidden", "toString": "hidden", "__proto__": { "a": "hidden" } }'
  )
  assert.deepEqual(checkConfig(given, { inferred: true }), { config: { transport: 'stdio', command: 'x' } })
})

test('of two servers of one name the later file counts, and a file before a plugin, whatever their order', () => {
  const entry = (source: 'global' | 'plugin', origin: string) =>
    ({ name: 'one', config: { transport: 'stdio', command: origin }, source, origin, mutable: false }) as const
  const [first, second, plugin] = [entry('global', 'first'), entry('global', 'second'), entry('plugin', 'plugin')]
  for (const entries of [
    [first, second, plugin],
    [plugin, first, second]
  ])
    assert.deepEqual(
      effective(entries).map(({ origin }) => origin),
      ['second']
    )
})

test('an image above 10 MiB is left out with its size', () => {
  const small = png(1, 1)
  const large = Buffer.concat([small, Buffer.alloc(10 * 1024 * 1024 + 3 - small.length)])
  const of = (bytes: Buffer) => resultOf({ content: [{ type: 'image', data: bytes.toString('base64'), mimeType: 'image/png' }] }).output
  for (const bytes of [small, large.subarray(0, 10 * 1024 * 1024)]) assert.match(JSON.stringify(of(bytes)).slice(0, 100), /"type":"image"/)
  assert.equal(of(large), `[image of ${large.length} bytes left out: it is larger than ${10 * 1024 * 1024}]`)
})

test('a text that is longer than a result may be is cut between characters, and nothing follows it', () => {
  const text = `x${'\u{1f600}'.repeat(60_000)}`
  const { output, note } = resultOf({
    content: [
      { type: 'text', text },
      { type: 'text', text: 'y' }
    ]
  })
  assert.match(String(note), /cut at 100000 characters/)
  assert.equal(output, text.slice(0, 99_999))
})
