import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { Link } from '../../../features/peers/link.ts'

test('a link that is being closed says its last words, and takes none any more', { timeout: 10_000 }, async t => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const there = connect((server.address() as { port: number }).port, '127.0.0.1').pause()
  const [here] = (await once(server, 'connection')) as [Socket]
  t.after(() => there.destroy())
  const told: unknown[] = []
  const ports = { shared: () => undefined, asked: async () => undefined, silent: () => undefined, closed: () => undefined }
  const link = new Link(here, { ...ports, told: (_topic, payload) => told.push(payload) })

  const lastWords = 'x'.repeat(8 * 1024 * 1024) // more than a socket takes while nobody reads
  link.tell('topic', lastWords)
  link.close()
  const body = Buffer.from(JSON.stringify({ tell: 'topic', payload: 'late' }))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 0)
  const arrived = once(here, 'data')
  there.write(Buffer.concat([head, body]))
  await arrived
  assert.deepEqual(told, [])
  let bytes = 0
  there.on('data', data => {
    bytes += data.length
  })
  there.resume()
  await once(here, 'close')
  await once(there, 'end')
  assert.ok(bytes > lastWords.length)
})
