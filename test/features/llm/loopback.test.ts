/** What counts as this machine: exempt from keys and proxies, and all that is left when the server is offline. */
import assert from 'node:assert/strict'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { test } from 'node:test'
import { lookupName } from '../../../features/llm/addresses.ts'
import { createUpstream, isLoopback, readText } from '../../../features/llm/index.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'

test('loopback is this machine only, however its address is written', () => {
  for (const url of [
    'http://localhost:1',
    'http://LOCALHOST/v1',
    'http://a.localhost',
    'http://127.9.9.9/v1',
    'http://127.1',
    'http://2130706433',
    'http://[::1]:2',
    'http://[0:0::0:1]'
  ])
    assert.equal(isLoopback(url), true, url)
  for (const url of [
    'http://localhost.example.com',
    'http://localhost@example.com',
    'http://example.com/localhost#127.0.0.1',
    'http://127.0.0.1.example.com',
    'http://127.0.0.1@10.0.0.1',
    'http://evil-localhost',
    'http://0.0.0.0',
    'http://[::]',
    'http://10.0.0.1',
    'http://128.0.0.1',
    'http://[::ffff:10.0.0.1]',
    'nonsense',
    '',
    undefined
  ])
    assert.equal(isLoopback(url), false, url)
})

test('a local name leads to this machine without asking a name server', async t => {
  const upstream = await fakeUpstream(t, [[{ status: 200, body: { ok: true } }]])
  const { get, close } = createUpstream({ HTTP_PROXY: 'http://127.0.0.1:9' })
  t.after(close)

  const reply = await get(`http://models.localhost:${upstream.port}/x`, {}, new AbortController().signal)

  assert.equal(await readText(reply.body), '{"ok":true}')
})

test('a local name has the addresses that were asked for', async () => {
  const found = (name: string, options: LookupOptions) =>
    new Promise<string | LookupAddress[]>((resolve, reject) =>
      lookupName(name, options, (error, address) => (error ? reject(error) : resolve(address)))
    )

  assert.equal(await found('localhost', {}), '127.0.0.1')
  assert.equal(await found('a.localhost', { family: 6 }), '::1')
  assert.deepEqual(
    ((await found('localhost', { all: true })) as LookupAddress[]).map(({ address }) => address),
    ['127.0.0.1', '::1']
  )
  await assert.rejects(found('nowhere.invalid', {}), { syscall: 'getaddrinfo' })
})
