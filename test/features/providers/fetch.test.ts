/** The one question that is put to providers and registries: its limits in time and bytes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createUpstream } from '../../../features/llm/index.ts'
import { FetchProblem, fetchJson } from '../../../features/providers/index.ts'
import { listServer } from './scene.ts'

const never = new AbortController().signal

/** A server that holds its answers; `timeout` lets the ten seconds pass. */
async function scene(t: TestContext) {
  const timeout = new AbortController()
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    assert.equal(ms, 10_000)
    return timeout.signal
  })
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const upstream = createUpstream({})
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await upstream.close()
  })
  const asked = once(server, 'request').then(([, res]) => res as ServerResponse)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/models`
  const ask = (signal = never, limit?: number) =>
    fetchJson(upstream, url, {}, signal, limit === undefined ? {} : { bytes: limit }).catch((error: unknown) => error)
  return { asked, ask, passTime: () => timeout.abort() }
}

const message = (error: unknown) => {
  assert.ok(error instanceof FetchProblem, String(error))
  return error.message
}

test('no head within ten seconds', async t => {
  const { ask, asked, passTime } = await scene(t)

  const answer = ask()
  await asked
  passTime()

  assert.equal(message(await answer), 'no answer within 10 s')
})

test('a body that stops in the middle is no answer, not a broken one', async t => {
  const { ask, asked, passTime } = await scene(t)

  const answer = ask()
  const res = await asked
  await new Promise<void>(resolve => res.write('{"data": [', () => resolve()))
  passTime()

  assert.equal(message(await answer), 'no answer within 10 s')
})

test('an abort passes untouched, also in the middle of the body', async t => {
  const { ask, asked } = await scene(t)
  const abort = new AbortController()

  const answer = ask(abort.signal)
  const res = await asked
  await new Promise<void>(resolve => res.write('{"data": [', () => resolve()))
  const reason = new Error('the pack unloads')
  abort.abort(reason)

  assert.equal(await answer, reason)
})

test('a connection that breaks off in the middle is no complete answer', async t => {
  const { ask, asked } = await scene(t)

  const answer = ask()
  const res = await asked
  await new Promise<void>(resolve => res.write('{"data": [', () => resolve()))
  res.destroy()

  assert.equal(message(await answer), 'the answer is not complete JSON')
})

test('a refused key is told from other failures: another one may work', async t => {
  for (const status of [401, 402, 403, 404, 500]) {
    const { url } = await listServer(t, () => status)
    const upstream = createUpstream({})
    t.after(() => upstream.close())

    const error = await fetchJson(upstream, url, {}, never).catch((error: unknown) => error)

    assert.equal(error instanceof FetchProblem && error.credential, status < 404, `${status}`)
  }
})

test('a byte order mark in front of an answer is none of it', async t => {
  const { ask, asked } = await scene(t)
  const answer = ask()
  ;(await asked).end('\uFEFF{"data":[]}')
  assert.deepEqual(await answer, { data: [] })
})

test('an answer ends below the limit', async t => {
  const { ask, asked } = await scene(t)
  const answer = ask(never, 10)
  ;(await asked).end('"12345678"')
  assert.equal(message(await answer), 'the answer is not smaller than 10 bytes')
})

test('an answer just below the limit is read', async t => {
  const { ask, asked } = await scene(t)
  const answer = ask(never, 11)
  ;(await asked).end('"12345678"')
  assert.equal(await answer, '12345678')
})
