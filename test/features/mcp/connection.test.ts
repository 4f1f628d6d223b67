import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as pass } from 'node:timers/promises'
import { type ConnectPorts, connect } from '../../../features/mcp/connection.ts'

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
