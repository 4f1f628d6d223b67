/** A hub on an http server of its own, without a kernel around it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { SubjectRule } from '../../kernel/index.ts'
import { createKernelHooks } from '../../kernel/lifecycle/hooks.ts'
import { createJournals } from '../../kernel/realtime/file-journals.ts'
import { Hub, type HubOptions } from '../../kernel/realtime/hub.ts'
import { SocketClient, type SocketOptions } from '../../kernel/testing/socket.ts'
import { testEnvironment } from '../../kernel/testing.ts'
import { openGate } from './gate.ts'
import { freshDir } from './temp.ts'

export interface TestHubOptions extends Partial<HubOptions> {
  /** Directory of the journals. */
  readonly dir?: string
  /** Id of the server, which names the file of its global events beside another server. */
  readonly server_id?: string
  /** Sessions that exist; default: all. */
  readonly sessions?: readonly string[]
  /** See the kernel's `connectionBufferBytes`. */
  readonly bufferBytes?: number
  /** See the kernel's option of that name. */
  readonly frameTimeoutMs?: number
  /** See the kernel's option of that name. */
  readonly firstFrameMs?: number
  /** See the kernel's option of that name. */
  readonly graceMs?: number
  /** Whom events are about; default: agents, as the sessions pack says. Null: nobody says so. */
  readonly subject?: SubjectRule | null
}

export const agents: SubjectRule = { field: 'agentId', fallback: 'main', filter: 'agent_filter' }

/** Starts a hub that stops with the test. Clock at 0, every session exists, violations are collected. */
export async function startHub(t: TestContext, options: TestHubOptions = {}) {
  const dir = options.dir ?? (await freshDir())
  const violations: Error[] = []
  const hooks = options.hooks ?? createKernelHooks()
  const { sessions, dir: _, server_id, bufferBytes, frameTimeoutMs, firstFrameMs, graceMs, subject = agents, ...own } = options
  hooks.attachStream.tap('test', id => (sessions && !sessions.includes(id) ? 'missing' : 'live'))
  const env = testEnvironment({
    now: () => new Date(0),
    onViolation: error => violations.push(error),
    ...(bufferBytes === undefined ? {} : { connectionBufferBytes: bufferBytes }),
    ...(frameTimeoutMs === undefined ? {} : { frameTimeoutMs }),
    ...(firstFrameMs === undefined ? {} : { firstFrameMs }),
    ...(graceMs === undefined ? {} : { graceMs })
  })
  const journals = createJournals({ ...env, home: dir, server_id: server_id ?? env.newId() }, { dir })
  const hub = new Hub(env, { gate: openGate(), journals, ...own, hooks })
  hub.setSubject(subject ?? undefined)
  const server = createServer()
  server.on('upgrade', (req, socket, head) => hub.clients.upgrade(req, socket, head))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(async () => {
    await hub.stop()
    server.close()
  })
  const connect = (options: SocketOptions = {}) => SocketClient.open(url, 'good', options)
  return { hub, dir, hooks, violations, url, connect, guard: env.guard }
}
