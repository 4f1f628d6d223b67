/** The body of an answer, piece by piece. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { Incoming } from '../../../features/llm/incoming.ts'

const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString()

test('what came before a body broke off is read before that is told', async () => {
  const body = new PassThrough()
  const incoming = new Incoming(body)
  body.write('one ')
  body.write('two')
  body.destroy(new Error('cut'))
  await new Promise(resolve => body.once('close', resolve))

  assert.equal(text(await incoming.coming()), 'one two')
  await assert.rejects(incoming.coming(), /cut/)
})

test('a body that was closed without an end counts as broken off, also when it was closed before', async () => {
  const body = new PassThrough()
  body.destroy()

  await assert.rejects(new Incoming(body).coming(), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
})

test('a body that nobody reads is asked to stop, and goes on when somebody does', async () => {
  const body = new PassThrough()
  const incoming = new Incoming(body)
  body.write(Buffer.alloc(65 * 1024))
  assert.equal(body.isPaused(), true)
  body.end('rest')

  assert.equal((await incoming.coming())?.length, 65 * 1024)
  assert.equal(text(await incoming.coming()), 'rest')
  assert.equal(await incoming.coming(), undefined)
})

test('a body that was left flows on, and may break off', async () => {
  const body = new PassThrough()
  const incoming = new Incoming(body)
  incoming.leave()
  body.write(Buffer.alloc(1024 * 1024))
  await once(body, 'drain')
  body.destroy(new Error('cut'))
  await new Promise(resolve => body.once('close', resolve))

  assert.equal(await incoming.coming(), undefined)
})
