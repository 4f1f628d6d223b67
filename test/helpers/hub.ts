/** A hub on an http server of its own, without a kernel around it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import { ulid } from 'ulid'
import { createKernelHooks } from '../../kernel/lifecycle/hooks.ts'
import { Hosts } from '../../kernel/lifecycle/slot.ts'
import { createHub, type HubOptions } from '../../kernel/realtime/hub.ts'
import { SocketClient, type SocketOptions } from '../../kernel/testing/socket.ts'
import { openGate } from './gate.ts'
import { freshDir } from './temp.ts'

export interface TestHubOptions extends Partial<HubOptions> {
  /** Sessions that exist; default: all. */
  readonly sessions?: readonly string[]
}

/** Starts a hub that stops with the test. Clock at 0, every session exists, violations are collected. */
export async function startHub(t: TestContext, options: TestHubOptions = {}) {
  const dir = options.dir ?? (await freshDir())
  const violations: Error[] = []
  const hooks = options.hooks ?? createKernelHooks()
  const { sessions } = options
  hooks.attachStream.tap('test', id => (sessions && !sessions.includes(id) ? 'missing' : 'live'))
  const hub = createHub({
    gate: openGate(),
    hosts: new Hosts(),
    log: pino({ level: 'silent' }),
    now: () => new Date(0),
    newId: () => ulid(),
    strict: true,
    onViolation: error => violations.push(error),
    server_id: ulid(),
    ...options,
    dir,
    hooks
  })
  const server = createServer()
  server.on('upgrade', (req, socket, head) => hub.upgrade(req, socket, head))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(async () => {
    await hub.stop()
    server.close()
  })
  const connect = (options: SocketOptions = {}) => SocketClient.open(url, 'good', options)
  return { hub, dir, hooks, violations, url, connect }
}
