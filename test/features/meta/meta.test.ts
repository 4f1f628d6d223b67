/** The meta pack through the front door. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import config from '../../../features/config/pack.ts'
import { getMeta, healthz, listConnections, shutdown } from '../../../features/meta/index.ts'
import meta from '../../../features/meta/pack.ts'
import { definePack, defineRoute, serviceToken, Type } from '../../../kernel/index.ts'
import { RestClient, startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

/** Sets environment variables for one test. */
function withEnv(t: TestContext, values: Readonly<Record<string, string>>): void {
  const before = Object.fromEntries(Object.keys(values).map(name => [name, process.env[name]]))
  Object.assign(process.env, values)
  t.after(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
}

async function homeWith(toml: string): Promise<string> {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), toml)
  return home
}

test('the health check answers without a token, and only as GET', async t => {
  const { rest } = await startTestKernel(t, { packs: [meta] })

  const answer = await rest.raw('GET', healthz.path, { token: null })

  assert.equal(answer.status, 200)
  const { code, data } = JSON.parse(answer.body.toString())
  assert.deepEqual({ code, data }, { code: 0, data: { ok: true } })
  assert.equal((await rest.raw('POST', healthz.path, { token: null })).status, 401)
})

test('a short page at / says what answers, without a token; a pack that serves that path, or all below it, takes its place', async t => {
  const { rest, kernel } = await startTestKernel(t, { packs: [meta] })
  const page = async () => (await rest.raw('GET', '/', { token: null })).body.toString()
  assert.match(await page(), /<h1>svc-code<\/h1>\n<p>This is the local server of a coding agent\./)

  for (const path of ['/', '/{+file}']) {
    const home = defineRoute({ method: 'GET', path, summary: 'Page', auth: 'none', data: Type.String() })
    const web = definePack({ name: 'web', setup: ctx => void ctx.route(home, () => 'a page of the pack') })
    await kernel.load(web)
    assert.equal((JSON.parse(await page()) as { data: string }).data, 'a page of the pack')
    await kernel.unload('web')
    assert.match(await page(), /<h1>svc-code/)
  }
})

test('a shutdown that a client asks for is told to whoever runs the server', async t => {
  const lines: string[] = []
  const { call, kernel } = await startTestKernel(t, { packs: [meta], onOperatorLine: ({ text }) => lines.push(text) })

  await call(shutdown)
  await kernel.done

  assert.deepEqual(lines, ['stopping: a client asked for it'])
})

test('meta names the server, its boot time, the protocol capabilities and nothing more', async t => {
  const { call, kernel } = await startTestKernel(t, { packs: [meta], version: '1.2.3', now: () => new Date(0) })

  const { code, data } = await call(getMeta)

  assert.equal(code, 0)
  const { experimental_flags, features, ...fixed } = data
  assert.deepEqual(fixed, {
    server_version: '1.2.3',
    capabilities: { websocket: true, file_upload: true, fs_query: true, mcp: true, tasks: true, terminal: true },
    server_id: kernel.server_id,
    started_at: '1970-01-01T00:00:00.000Z',
    open_in_apps: [],
    dangerous_bypass_auth: false,
    backend: 'v2'
  })
  const [{ meta: { time: _time, ...told } = {}, ...feature } = {}, ...others] = features
  assert.deepEqual([feature, told, others], [{ name: 'meta', state: 'Active' }, {}, []])
  assert.ok(Object.keys(experimental_flags).length > 0)
})

test('features show what of a pack went wrong', async t => {
  const clumsy = definePack({
    name: 'clumsy',
    setup: ctx =>
      ctx.tap(ctx.hooks.started, () => {
        throw new Error('no screen')
      })
  })
  const { call } = await startTestKernel(t, { packs: [meta, clumsy] })
  const { meta: { time: _time, ...told } = {}, ...feature } = (await call(getMeta)).data.features[1] ?? {}
  assert.deepEqual(feature, { name: 'clumsy', state: 'Active' })
  assert.deepEqual(told, { faults: { count: 1, last: 'tap of started: no screen' } })
})

test('features show why a pack is not active, and follow its fate', async t => {
  const Missing = serviceToken<object>('missing')
  const waiting = definePack({ name: 'waiting', version: '2.0.0', needs: { missing: Missing }, setup: () => undefined })
  const failing = definePack({
    name: 'failing',
    setup: () => {
      throw new Error('no luck')
    }
  })
  const { call, kernel } = await startTestKernel(t, { packs: [meta, waiting, failing] })

  const before = (await call(getMeta)).data.features
  await kernel.load(definePack({ name: 'late', provides: [Missing], setup: ctx => ctx.provide(Missing, {}) }))
  const after = (await call(getMeta)).data.features

  assert.deepEqual(before.slice(1), [
    { name: 'waiting', state: 'Pending', meta: { version: '2.0.0', waiting_for: ['missing'] } },
    { name: 'failing', state: 'Failed', meta: { error: 'no luck' } }
  ])
  assert.deepEqual(
    after.map(({ name, state }) => `${name} ${state}`),
    ['meta Active', 'waiting Active', 'failing Failed', 'late Active']
  )
})

test('flags are off by default; the file sets them and the environment wins, also over the switch for all', async t => {
  withEnv(t, { SVC_CODE_EXPERIMENTAL_TOOL_SELECT: '1', SVC_CODE_EXPERIMENTAL_WAIT_FOR: 'false' })
  const home = await homeWith('[experimental]\nwait_for = true\nmine = true\n')
  const { call } = await startTestKernel(t, { packs: [config, meta], home })

  const flags = (await call(getMeta)).data.experimental_flags
  process.env.SVC_CODE_EXPERIMENTAL_FLAG = '1'
  t.after(() => delete process.env.SVC_CODE_EXPERIMENTAL_FLAG)
  const other = await startTestKernel(t, { packs: [config, meta], home: await homeWith('') })
  const all = (await other.call(getMeta)).data.experimental_flags

  assert.deepEqual(flags, {
    wait_for: false,
    auto_session_title: false,
    'secondary-model': false,
    subagent_fork: false,
    'tool-select': true,
    mine: true
  })
  assert.equal(all.auto_session_title, true)
  assert.equal(all.wait_for, false)
})

test('without the config pack the environment still sets flags', async t => {
  withEnv(t, { SVC_CODE_EXPERIMENTAL_SUBAGENT_FORK: 'true' })
  const { call } = await startTestKernel(t, { packs: [meta] })

  const flags = (await call(getMeta)).data.experimental_flags

  assert.equal(flags.subagent_fork, true)
  assert.equal(flags.wait_for, false)
})

test('a title for web pages comes from the deployment', async t => {
  const { call } = await startTestKernel(t, { packs: [meta], config: { meta: { web_title: 'My agents' } } })

  assert.equal((await call(getMeta)).data.web_title, 'My agents')
})

test('bypassed authentication is told, and no token is asked for', async t => {
  const { rest } = await startTestKernel(t, { packs: [meta], dangerousBypassAuth: true })

  const answer = await rest.raw('GET', getMeta.path, { token: null })

  assert.equal(answer.status, 200)
  assert.equal(JSON.parse(answer.body.toString()).data.dangerous_bypass_auth, true)
})

test('shutdown replies first; then the sockets are told, the server ends and its port is free', async t => {
  const { call, connect: open, kernel, url } = await startTestKernel(t, { packs: [meta] })
  const socket = await open()

  const reply = await call(shutdown)
  await kernel.done

  assert.deepEqual({ code: reply.code, data: reply.data }, { code: 0, data: { ok: true } })
  assert.equal((await socket.closed).code, 1001)
  await assert.rejects(knock(url), { code: 'ECONNREFUSED' })
})

test('beyond loopback the shutdown route does not exist, unless the operator allows it', async t => {
  const closed = await startTestKernel(t, { packs: [meta], host: '0.0.0.0' })
  const local = clientOf(t, closed.kernel.address.port, closed.token)

  const refused = await local.call(shutdown)

  assert.equal(refused.status, 404)
  assert.equal(refused.code, 40400)
  assert.equal((await local.call(getMeta)).code, 0)

  const open = await startTestKernel(t, { packs: [meta], host: '0.0.0.0', allowRemoteShutdown: true })
  const allowed = await clientOf(t, open.kernel.address.port, open.token).call(shutdown)
  await open.kernel.done

  assert.equal(allowed.code, 0)
})

test('connections lists the sockets that are open, oldest first', async t => {
  let clock = 0
  const { call, connect: open } = await startTestKernel(t, { packs: [meta], now: () => new Date(clock) })
  assert.deepEqual((await call(listConnections)).data.connections, [])
  const first = await open({ headers: { 'user-agent': 'first/1' } })
  clock = 1000
  const second = await open({ headers: { 'user-agent': 'second/1' } })
  await second.request('client_hello', { client_id: 'test', subscriptions: [] })

  const { connections } = (await call(listConnections)).data

  assert.deepEqual(
    connections.map(({ id, connected_at, user_agent, has_client_hello, subscriptions }) => ({
      id,
      connected_at,
      user_agent,
      has_client_hello,
      subscriptions
    })),
    [
      { ...idOf(first), connected_at: '1970-01-01T00:00:00.000Z', user_agent: 'first/1', has_client_hello: false, subscriptions: [] },
      { ...idOf(second), connected_at: '1970-01-01T00:00:01.000Z', user_agent: 'second/1', has_client_hello: true, subscriptions: [] }
    ]
  )
  assert.ok(connections.every(one => one.remote_address !== null))
})

function idOf(socket: { frames: readonly { type: string; payload: { ws_connection_id: string } }[] }): { id: string } {
  return { id: socket.frames.find(frame => frame.type === 'server_hello')?.payload.ws_connection_id ?? '' }
}

function clientOf(t: TestContext, port: number, token: string): RestClient {
  const client = new RestClient(`http://127.0.0.1:${port}`, token)
  t.after(() => client.close())
  return client
}

/** Connects once; rejects as the system does when nobody listens. */
function knock(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })
}
