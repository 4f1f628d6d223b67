/** The way to remote servers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRemoteFetch } from '../../../features/mcp/index.ts'
import { fakeProxy } from '../../helpers/fake-proxy.ts'

test('a proxy that hangs up instead of opening a tunnel fails the request, and is asked once', async t => {
  const proxy = await fakeProxy(t, 0, { breaks: ['', ''], refuse: 407 })
  const { fetch, close } = createRemoteFetch({ bytes: 1000 }, { HTTPS_PROXY: `127.0.0.1:${proxy.port}` })
  t.after(close)

  await assert.rejects(fetch('https://tools.invalid/mcp'), { message: 'it cannot be reached: the proxy closed the connection' })

  assert.deepEqual(proxy.asked, ['CONNECT tools.invalid:443'])
})
