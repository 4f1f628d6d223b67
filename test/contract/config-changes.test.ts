/** `event.config.changed` on real sockets, and patches that arrive at once, in one process and in two (contract 1, Configuration, rule 4). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Frame, RestClient, SocketClient } from '../../kernel/testing.ts'
import { serve } from '../helpers/cli.ts'
import { type ConfigScene, configScene, settingsOf } from '../helpers/config-scene.ts'
import { freshDir } from '../helpers/temp.ts'

const isChange = ({ type }: Frame) => type === 'event.config.changed'
const changes = (socket: SocketClient) => socket.frames.filter(isChange)

/** Waits for a patch that is sent last: what was told before has arrived then. */
async function last({ patch }: Pick<ConfigScene, 'patch'>, ...sockets: SocketClient[]): Promise<void> {
  await patch({ default_provider: 'last' })
  await Promise.all(sockets.map(socket => socket.next(frame => isChange(frame) && frame.payload.config.default_provider === 'last')))
}

test('a patch is told once to every socket, in both spellings, with the redacted object that the answer has', async t => {
  const scene = await configScene(t)
  const sockets = [await scene.server.connect(), await scene.server.connect()]

  const answer = await scene.patch({ providers: { p: { type: 'svc', api_key: 'SEED-1' } }, loopControl: { maxStepsPerTurn: 1 } })
  const [frame] = await Promise.all(sockets.map(socket => socket.next(isChange)))
  await last(scene, ...sockets)

  const changed_fields = ['providers', 'loop_control']
  const { changed_fields: fields, changedFields, config } = frame?.payload ?? {}
  assert.deepEqual({ fields, changedFields, config }, { fields: changed_fields, changedFields: changed_fields, config: answer })
  assert.equal(typeof frame?.seq, 'number')
  for (const socket of sockets) {
    assert.equal(changes(socket).length, 2)
    assert.doesNotMatch(JSON.stringify(socket.frames), /SEED/)
  }
})

test('the fields are those of the body; what changes nothing at all is not told', async t => {
  const scene = await configScene(t, 'plan_mode = true\n')
  const socket = await scene.server.connect()

  for (const body of [{}, { raw: { a: 1 } }, { nonsense: 1 }, { yolo: false }, { telemetry: null }]) await scene.patch(body)
  await scene.refused({ telemetry: 1 })
  await scene.patch({ yolo: true })
  await scene.patch({ plan_mode: true }) // says what is there already: the client asked for it and hears that it holds
  await last(scene, socket)

  assert.deepEqual(
    changes(socket).map(({ payload }) => payload.changed_fields),
    [['yolo', 'default_permission_mode'], ['plan_mode'], ['default_provider']]
  )
})

test('saves of other routes are told, too', async t => {
  const scene = await configScene(t)
  const socket = await scene.server.connect()
  const { rest } = scene.server

  await rest.json('POST', '/api/v1/providers', { id: 'q', type: 'svc', models: [{ model: 'm', max_context_size: 1 }] })
  await rest.json('POST', '/api/v1/models/q%2Fm:set_default')
  await rest.raw('DELETE', '/api/v1/providers/q')
  await last(scene, socket)

  const told = changes(socket).map(({ payload }) => [...payload.changed_fields].sort().join())
  assert.deepEqual([told[0], told.at(-2), told.at(-1)], ['default_model,models,providers', 'models,providers', 'default_provider'])
})

test('a hundred patches at once are all there, and each is told with what it changed', async t => {
  const scene = await configScene(t)
  const socket = await scene.server.connect()
  const names = Array.from({ length: 100 }, (_, n) => `flag-${n}`)

  await Promise.all(names.map(name => scene.patch({ experimental: { [name]: true } })))
  await last(scene, socket)

  const flags = Object.fromEntries(names.map(name => [name, true]))
  assert.deepEqual((await scene.get()).experimental, flags)
  assert.deepEqual((await scene.table()).experimental, flags)
  const sizes = changes(socket).map(({ payload }) => Object.keys(payload.config.experimental).length)
  assert.deepEqual(sizes, [...names.keys()].map(n => n + 1).concat(100))
})

test('patches of one key are told in the order in which they came, and the last one stays', async t => {
  const scene = await configScene(t)
  const socket = await scene.server.connect()

  const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => scene.patch({ subagent: { timeoutMs: n } })))
  await last(scene, socket)

  const told = changes(socket).map(({ payload }) => payload.config.subagent.timeoutMs as number)
  assert.equal((await scene.get()).subagent.timeoutMs, told.at(-1))
  assert.deepEqual(
    [...told.slice(0, -1)].sort((a, b) => a - b),
    [...answers.keys()]
  )
  const seqs = changes(socket).map(({ seq }) => seq as number)
  assert.deepEqual(
    seqs,
    [...seqs].sort((a, b) => a - b)
  )
})

async function server(t: TestContext, home: string) {
  const { url, token } = await serve(t, home, '--port', '0')
  const rest = new RestClient(url, token)
  const socket = await SocketClient.open(url, token)
  t.after(() => {
    socket.terminate()
    rest.close()
  })
  return { socket, ...settingsOf(rest) }
}

test('two servers on one home: each tells its own sockets what the other saved, and no patch is lost', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), '# mine\n')
  const servers = [await server(t, home), await server(t, home)] as const
  const [one, two] = servers

  await one.patch({ default_model: 'a', providers: { p: { type: 'svc', api_key: 'SEED-1' } } })
  assert.equal((await two.get()).default_model, 'a')
  const { payload } = await two.socket.next(isChange)
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => servers[n % 2]!.patch({ experimental: { [`flag-${n}`]: true }, subagent: { timeoutMs: n } }))
  )
  const [left, right] = [await one.get(), await two.get()]

  assert.deepEqual([payload.changed_fields, payload.config.default_model], [['default_model', 'providers'], 'a'])
  assert.doesNotMatch(JSON.stringify(two.socket.frames), /SEED/)
  assert.equal(Object.keys(left.experimental).length, 20)
  assert.deepEqual(left, right)
  for (const { socket } of servers)
    await socket.next(frame => isChange(frame) && frame.payload.config.subagent.timeoutMs === left.subagent.timeoutMs)
})
