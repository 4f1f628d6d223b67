/** Graceful end under load: sockets first, turns closed as interrupted, children dead, everything on disk. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RestClient, SocketClient } from '../../kernel/testing.ts'
import { serve } from '../helpers/cli.ts'
import { journal } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'

async function started(t: TestContext, home: string) {
  const server = await serve(t, home, '--port', '0')
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  const socket = await SocketClient.open(server.url, server.token)
  const open = async (cwd: string) => {
    const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd } })).data as { id: string }
    await socket.request('subscribe', { session_ids: [id] })
    return id
  }
  const prompt = (id: string, text: string, more = {}) =>
    rest.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text }], ...more })
  return { ...server, rest, socket, open, prompt }
}

test('SIGTERM while a turn streams, a command runs and an approval waits: 1001 first, all turns end, code 0, and a clean restart', async t => {
  const { home, place } = await crashScene(t)
  const server = await started(t, home)
  const [streams, runs, waits] = [await server.open(place), await server.open(place), await server.open(place)]
  await server.prompt(streams, 'hang')
  await server.prompt(streams, 'talk')
  await server.prompt(runs, 'sleep', { permission_mode: 'yolo' })
  await server.prompt(waits, 'tools')
  await server.socket.next(frame => frame.type === 'assistant.delta' && frame.session_id === streams)
  await server.socket.next(frame => frame.type === 'shell.started' && frame.session_id === runs)
  await server.socket.next(frame => frame.type === 'event.approval.requested' && frame.session_id === waits)
  const children = await descendants(server.child.pid ?? 0)
  if (process.platform === 'linux') assert.ok(children.length > 0)

  const asked = performance.now()
  server.child.kill('SIGTERM')
  assert.deepEqual(await server.socket.closed, { code: 1001, reason: 'server shutting down' })
  assert.equal((await server.ended).code, 0)
  const took = performance.now() - asked
  assert.ok(took < 3000, `it took ${Math.round(took)} ms`)
  for (const pid of children) assert.equal(await alive(pid), false, `child ${pid} lives`)

  const again = await started(t, home)
  for (const [id, ends] of [
    [streams, ['cancelled', 'completed']],
    [runs, ['cancelled']],
    [waits, ['cancelled']]
  ] as const) {
    const before = (await again.rest.json('GET', `/api/v1/sessions/${id}`)).data as { last_turn_reason?: string }
    // What waited in `streams` runs again by itself, and a turn that begins takes the reason of the one before away.
    if (id !== streams) assert.equal(before.last_turn_reason, 'cancelled')
    await again.socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
    if (id === streams) await again.socket.next(frame => frame.type === 'prompt.completed' && frame.session_id === id)
    const events = await journal(again.url, again.token, id)
    const of = (type: string) => events.filter(event => event.type === type)
    assert.deepEqual(
      of('turn.ended').map(event => event.payload.reason),
      ends
    )
    assert.equal(of('turn.ended')[0]?.payload.interruptReason, 'aborted')
    assert.equal(of('tool.call.started').length, of('tool.result').length)
    assert.equal(of('event.approval.requested').length, of('event.approval.resolved').length)
    const submitted = new Set(of('prompt.submitted').map(({ payload }) => payload.promptId))
    assert.equal(submitted.size, of('prompt.completed').length + of('prompt.aborted').length)
    assert.equal(events.at(-1)?.type.startsWith('prompt.'), true)
  }
})

test('a second signal ends at once and takes running commands along', { skip: process.platform !== 'linux', timeout: 40_000 }, async t => {
  const { home, place } = await crashScene(t)
  const server = await started(t, home)
  const id = await server.open(place)
  await server.prompt(id, 'sleep', { permission_mode: 'yolo' })
  await server.socket.next('tool.call.started')
  while ((await descendants(server.child.pid ?? 0)).length === 0) await new Promise(resolve => setTimeout(resolve, 2))
  const children = await descendants(server.child.pid ?? 0)
  server.child.kill('SIGTERM')
  assert.equal((await server.socket.closed).code, 1001)
  server.child.kill('SIGTERM')
  assert.equal((await server.ended).code, 130)
  // A process that was killed is there until it is its turn to run.
  for (const pid of children) while (await alive(pid)) await new Promise(resolve => setTimeout(resolve, 2))
})

test('after a graceful end a restart tells nothing twice', async t => {
  const { home, place } = await crashScene(t)
  const server = await started(t, home)
  const id = await server.open(place)
  await server.prompt(id, 'tools', { permission_mode: 'yolo' })
  await server.socket.next('prompt.completed')
  const before = await journal(server.url, server.token, id)
  server.child.kill('SIGTERM')
  await server.ended
  const again = await started(t, home)
  assert.deepEqual(await journal(again.url, again.token, id), before)
})

async function descendants(pid: number): Promise<number[]> {
  const text = await readFile(join('/proc', String(pid), 'task', String(pid), 'children'), 'utf8').catch(() => '')
  const own = text.trim().split(' ').filter(Boolean).map(Number)
  return [...own, ...(await Promise.all(own.map(descendants))).flat()]
}

async function alive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat !== '' && !/\) Z /.test(stat)
}
