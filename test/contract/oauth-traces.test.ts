/** What a login shows of itself elsewhere: its provider is protected, its requests name the device, its secrets are nowhere. */
import assert from 'node:assert/strict'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { account, MANAGED } from '../helpers/account.ts'
import { withEnvironment } from '../helpers/environment.ts'
import { refused } from '../helpers/fake-oauth.ts'

test('a provider with a login is not replaced, deleted or imported over; refresh_oauth asks those alone', async t => {
  const lists = await new Promise<Server>(resolve => {
    const models = { one: { id: 'one', name: 'One', limit: { context: 1000 } } }
    const entry = { id: 'mine', name: 'Mine', type: 'compat_chat', api: 'http://127.0.0.1:9/v1', models }
    const server = createServer((_, res) => res.end(JSON.stringify({ mine: entry }))).listen(0, '127.0.0.1', () => resolve(server))
  })
  t.after(() => void lists.close())
  const directory = `http://127.0.0.1:${(lists.address() as AddressInfo).port}/api.json`
  withEnvironment(t, { SVC_CODE_CATALOG_URL: directory })
  const mine = '[providers.mine]\ntype = "svc"\nbase_url = "http://127.0.0.1:9/v1"\noauth = { storage = "file", key = "mine" }\n'
  const keyed = '[providers.keyed]\ntype = "svc"\napi_key = "k"\nbase_url = "http://127.0.0.1:9/v1"\nmodel_source = "discover"\n'
  const { api, logIn, fake, events, home } = await account(t, { toml: mine + keyed })
  await logIn()
  const before = await readFile(join(home, 'config.toml'), 'utf8')
  const form = { type: 'svc', models: [{ model: 'x', max_context_size: 1 }] }

  for (const id of [MANAGED, 'mine']) {
    assert.equal((await api('PUT', `/providers/${encodeURIComponent(id)}`, form)).code, 40003)
    assert.equal((await api('DELETE', `/providers/${encodeURIComponent(id)}`)).code, 40003)
  }
  assert.equal((await api('POST', '/providers:import_catalog', { catalog_id: 'mine' })).code, 40003)
  assert.equal((await api('POST', '/providers:import_catalog', { catalog_id: 'mine', id: MANAGED })).code, 40004)
  assert.equal((await api('POST', '/providers:import_registry', { url: directory })).code, 40003)
  assert.equal((await api('POST', '/providers', { id: MANAGED, ...form })).code, 40001)
  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), before)

  const report = (await api('POST', '/providers:refresh_oauth')).data
  assert.deepEqual([report.changed, report.unchanged], [[], [MANAGED]])
  assert.deepEqual(
    report.failed.map(({ provider }: { provider: string }) => provider),
    ['mine']
  )
  assert.equal(events.filter(({ type }) => type === 'event.model_catalog.changed').length, 0)

  fake.answer('models', [
    {
      body: {
        data: [
          { id: 'large', context_length: 262_144 },
          { id: 'new', context_length: 1000 }
        ]
      }
    }
  ])
  const { changed } = (await api('POST', '/providers:refresh_oauth', { ignored: true })).data
  assert.deepEqual(
    changed.map(({ provider_id, added, removed }: Record<string, unknown>) => [provider_id, added, removed]),
    [[MANAGED, 1, 1]]
  )
  assert.equal(fake.asked('models').at(-1)?.headers.authorization, 'Bearer access-token-1')
  assert.equal(events.filter(({ type }) => type === 'event.model_catalog.changed').length, 1)
})

test('what goes upstream: forms, user agent, device headers with one id per home, bearer tokens', async t => {
  const { fake, logIn, api, home, clock } = await account(t)
  await logIn()
  clock.now += 3_600_000
  await api('GET', '/oauth/usage')
  await api('GET', '/oauth/userinfo')

  const forms = [...fake.asked('device'), ...fake.asked('poll'), ...fake.asked('refresh')]
  const reads = [...fake.asked('models'), ...fake.asked('usages'), ...fake.asked('me')]
  assert.deepEqual(
    forms.map(({ method, headers }) => [method, headers['content-type']]),
    forms.map(() => ['POST', 'application/x-www-form-urlencoded'])
  )
  for (const { headers } of forms) assert.equal(headers.authorization, undefined)
  for (const { headers } of reads) assert.match(String(headers.authorization), /^Bearer access-token-/)
  for (const { headers } of [...forms, ...reads]) {
    assert.match(String(headers['user-agent']), /^svc-code\/\d/)
    for (const name of ['platform', 'version', 'device-name', 'device-model', 'os-version', 'device-id']) {
      assert.ok(headers[`x-svc-${name}`], name)
    }
  }
  const ids = new Set([...forms, ...reads].map(({ headers }) => headers['x-svc-device-id']))
  assert.equal(ids.size, 1)
  const again = await account(t, { fake, home, clock })
  await again.api('GET', '/oauth/usage')
  assert.ok(ids.has(fake.asked('usages').at(-1)?.headers['x-svc-device-id']))
})

test('a device id that cannot be kept is no reason to fail', async t => {
  const { home, logIn, fake } = await account(t)
  await mkdir(join(home, 'device_id'))

  await logIn()

  const ids = [...fake.asked('device'), ...fake.asked('poll')].map(({ headers }) => headers['x-svc-device-id'])
  assert.equal(new Set(ids).size, 1)
  assert.match(String(ids[0]), /^[0-9a-f-]{36}$/)
})

test('tokens, codes of the device and the device id are in no log, no answer and no event', async t => {
  const lines: string[] = []
  const server = await account(t, { kernel: { log: { level: 'trace', to: { write: line => void lines.push(line) } } } })
  const { api, fake, logIn, clock, events } = server
  const said: unknown[] = []
  const look = async (method: string, path: string, body?: unknown) => said.push(await api(method, path, body))
  await logIn()
  for (const path of ['/oauth/login', '/auth', '/config', '/providers', '/models', '/oauth/usage', '/oauth/userinfo'])
    await look('GET', path)
  clock.now += 3_600_000
  fake.answer('usages', [{ status: 401, body: { message: 'access-token-renewed-1 access-token-renewed-2' } }])
  await look('GET', '/oauth/usage')
  fake.answer('refresh', [{ status: 500, body: { error_description: 'refresh-token-renewed-2 failed' } }])
  clock.now += 3_600_000
  await look('GET', '/oauth/userinfo')
  fake.answer('refresh', [refused('invalid_grant', 400, 'refresh-token-renewed-2 is over')])
  await look('GET', '/oauth/userinfo')
  fake.answer('poll', [refused('server_error', 500, 'device-code-2 is bad')])
  await look('POST', '/oauth/login', {})
  await server.settled()
  await look('GET', '/oauth/login')
  fake.answer('device', [refused('invalid_client', 401, 'no')])
  await look('POST', '/oauth/login', {})
  await look('POST', '/oauth/logout', {})

  const device_id = String(fake.asked('device')[0]?.headers['x-svc-device-id'])
  const text = JSON.stringify([said, events, lines])
  for (const secret of ['access-token', 'refresh-token', 'device-code-', device_id]) {
    assert.equal(text.includes(secret), false, secret)
  }
  assert.ok(lines.length > 0 && said.length > 10)
})
