import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as pass } from 'node:timers/promises'
import { type ConnectPorts, connect } from '../../../features/mcp/connection.ts'
import { resultOf } from '../../../features/mcp/results.ts'
import { McpServer } from '../../../features/mcp/server.ts'
import { silent } from '../tools/fakes.ts'

/** Ports to a server with these pages of tools. */
function portsTo(pages: readonly (readonly string[])[], tools: number): ConnectPorts {
  const answerTo = (method: string, params: { protocolVersion?: string; cursor?: string }) => {
    if (method === 'initialize') {
      const serverInfo = { name: 'paged', version: '1' }
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
    }
    const page = Number(params.cursor ?? 0)
    const next = page + 1 < pages.length ? { nextCursor: `${page + 1}` } : {}
    return { tools: (pages[page] ?? []).map(name => ({ name, inputSchema: { type: 'object' } })), ...next }
  }
  const fetch = async (_url: string | URL, init?: RequestInit) => {
    if (init?.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method, params = {} } = JSON.parse(String(init.body))
    if (id === undefined) return new Response(null, { status: 202 })
    return Response.json({ jsonrpc: '2.0', id, result: answerTo(method, params) })
  }
  return {
    remote: { fetch, close: () => Promise.resolve() },
    shell: () => undefined,
    version: '1',
    tokens: () => undefined,
    startupMs: 10_000,
    limits: { tools, messageBytes: 1000, messagesPerSecond: 1 }
  }
}
const config = { transport: 'http', url: 'http://127.0.0.1:1/mcp' } as const
const entry = { name: 'paged', config, source: 'global', origin: 'mcp.json', mutable: true } as const

test('tools are listed page by page, as many as may be; those beyond are counted', async () => {
  const events = { closed: () => undefined, toolsChanged: () => undefined }
  const connection = await connect(entry, '/', portsTo([['a', 'b'], ['c', 'd'], ['e']], 4), new AbortController().signal, events)
  assert.deepEqual([connection.tools.map(({ name }) => name), connection.omitted], [['a', 'b', 'c', 'd'], 1])
  await connection.close()
})

test('texts of a result are bounded together; structured content counts where there is no other', () => {
  const text = { type: 'text', text: 'x'.repeat(60_000) } as const
  const { output, note } = resultOf({ content: [text, text] })
  assert.deepEqual([output.length, note], [100_001, 'The output was cut at 100000 characters.'])
  const structuredContent = { a: 1 }
  assert.equal(resultOf({ content: [{ type: 'text', text: 'plain' }], structuredContent }).output, 'plain')
  assert.equal(resultOf({ content: [], structuredContent }).output, '{"a":1}')
})

test('a call that was prepared for a server which was started anew since is not made', async () => {
  const server = new McpServer(entry, '/', { ...portsTo([['a']], 9), log: silent, backoffMs: [], changed: () => undefined })
  server.start()
  await server.settled
  const { generation } = server
  await server.restart()
  await server.settled
  const options = { signal: new AbortController().signal, timeoutMs: 1000, progress: () => undefined }
  await assert.rejects(server.call(generation, 'a', {}, options), /was started anew: call the tool again/)
  await server.close()
})

test('a start that is given up while the library still loads rejects, and nothing of it fails where nobody listens', async t => {
  const escaped: unknown[] = []
  const listen = (error: unknown) => void escaped.push(error)
  process.on('unhandledRejection', listen)
  t.after(() => process.off('unhandledRejection', listen))
  const ports: ConnectPorts = {
    remote: { fetch: () => Promise.reject(new Error('nobody is there')), close: () => Promise.resolve() },
    shell: () => undefined,
    version: '1',
    tokens: () => undefined,
    startupMs: 1000,
    limits: { tools: 1, messageBytes: 1000, messagesPerSecond: 1 }
  }
  const config = { transport: 'http', url: 'http://127.0.0.1:1/mcp' } as const
  const entry = { name: 'late', config, source: 'global', origin: 'mcp.json', mutable: true } as const
  const stop = new AbortController()
  const connecting = connect(entry, '/', ports, stop.signal, { closed: () => undefined, toolsChanged: () => undefined })
  stop.abort(new Error('given up'))
  await assert.rejects(connecting)
  for (let n = 0; n < 5; n++) await pass()
  assert.deepEqual(escaped, [])
})
