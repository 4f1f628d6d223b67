/** The way to remote servers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { guardOutbound, OutboundRefused } from '../../../features/llm/index.ts'
import { createRemoteFetch } from '../../../features/mcp/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeProxy } from '../../helpers/fake-proxy.ts'

/** A server that notes what it is asked, and answers with `answer`. */
async function site(t: TestContextLike, answer: (path: string) => { readonly status: number; readonly location?: string }) {
  const asked: string[] = []
  const server = createServer(async (request, reply) => {
    const body = Buffer.concat(await request.toArray()).toString()
    asked.push(`${request.method} ${request.url} ${request.headers['x-key'] ?? ''} ${body}`.trim())
    const { status, location } = answer(request.url ?? '')
    reply.writeHead(status, location === undefined ? {} : { location }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}
const post = { method: 'POST', headers: { 'x-key': 'secret' }, body: 'words' }

test('a redirect within a server is followed as it was asked for; another server is not told what is for the first one', async t => {
  const { fetch, close } = createRemoteFetch({ bytes: 1000 })
  t.after(close)
  const other = await site(t, () => ({ status: 200 }))
  const one = await site(t, path => {
    if (path === '/mcp') return { status: 307, location: '/mcp/' }
    if (path === '/away') return { status: 307, location: `${other.url}/mcp` }
    if (path === '/round') return { status: 302, location: '/round' }
    return { status: 200 }
  })

  assert.equal((await fetch(`${one.url}/mcp`, post)).status, 200)
  await assert.rejects(fetch(`${one.url}/away`, post), { message: `it redirects to ${other.url}: name that address in its configuration` })
  await assert.rejects(fetch(`${one.url}/round`), { message: 'it redirects too often' })

  assert.deepEqual(one.asked.slice(0, 3), ['POST /mcp secret words', 'POST /mcp/ secret words', 'POST /away secret words'])
  assert.deepEqual(other.asked, [])
})

test('who may not be called is not called by way of a redirect either', async t => {
  const { fetch, close } = createRemoteFetch({ bytes: 1000, elsewhere: true })
  t.after(close)
  const other = await site(t, () => ({ status: 200 }))
  const one = await site(t, () => ({ status: 303, location: `${other.url}/there` }))
  assert.equal((await fetch(`${one.url}/mcp`, post)).status, 200)
  const undo = guardOutbound(url => {
    if (url.origin === other.url) throw new OutboundRefused(url, 'of the test')
  })
  t.after(undo)
  await assert.rejects(fetch(`${one.url}/mcp`), OutboundRefused)
  assert.deepEqual(other.asked, ['GET /there'])
})

test('a proxy that hangs up instead of opening a tunnel fails the request, and is asked once', async t => {
  const proxy = await fakeProxy(t, 0, { breaks: ['', ''], refuse: 407 })
  const { fetch, close } = createRemoteFetch({ bytes: 1000 }, { HTTPS_PROXY: `127.0.0.1:${proxy.port}` })
  t.after(close)

  await assert.rejects(fetch('https://tools.invalid/mcp'), { message: 'it cannot be reached: the proxy closed the connection' })

  assert.deepEqual(proxy.asked, ['CONNECT tools.invalid:443'])
})

test('a stream of events is told apart in events wherever it is cut', async t => {
  const { fetch, close } = createRemoteFetch({ bytes: 1000 })
  t.after(close)
  const server = createServer(async (_request, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let event = 0; event < 20; event++) {
      for (const piece of [`data: ${'x'.repeat(80)}\r\n`, '\r', '\n']) {
        reply.write(piece)
        await new Promise(resolve => setImmediate(resolve))
      }
    }
    reply.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())

  const { body } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)

  assert.equal((await new Response(body).text()).match(/^data/gm)?.length, 20)
})
