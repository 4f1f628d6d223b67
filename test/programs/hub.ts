/** A process of its own with a hub: emits without end and prints every number a connected client has seen. Arguments: directory. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { defineEvent, Type } from '../../kernel/index.ts'
import { createKernelHooks } from '../../kernel/lifecycle/hooks.ts'
import { createJournals } from '../../kernel/realtime/file-journals.ts'
import { Hub } from '../../kernel/realtime/hub.ts'
import { SocketClient } from '../../kernel/testing/socket.ts'
import { testEnvironment } from '../../kernel/testing.ts'
import { openGate } from '../helpers/gate.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ n: Type.Integer() }) })
const hooks = createKernelHooks()
hooks.attachStream.tap('child', () => 'live')
const env = testEnvironment({ strict: false })
const dir = process.argv[2] ?? ''
const journals = createJournals({ ...env, home: dir, server_id: env.newId() }, { dir })
const hub = new Hub(env, { journals, gate: openGate(), hooks })
const server = createServer()
server.on('upgrade', (req, socket, head) => hub.clients.upgrade(req, socket, head))
server.listen(0, '127.0.0.1', async () => {
  const client = await SocketClient.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'good')
  client.ws.on('message', data => {
    const frame = JSON.parse(data.toString()) as { type: string; seq: number; epoch: string }
    if (frame.type === noted.type) process.stdout.write(`${frame.seq} ${frame.epoch}\n`)
  })
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; ; n++) {
    hub.emit(noted, { n }, 's1')
    if (n % 5 === 0) await new Promise(resolve => setImmediate(resolve))
  }
})
