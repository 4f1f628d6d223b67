/** Model lists, registries and directories that repeat what they were sent: refresh and import show and keep nothing of it. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeUpstream, type Step } from '../helpers/fake-upstream.ts'
import { tomlFile } from '../helpers/secret-config.ts'
import { type Sent, sentBy } from '../helpers/secret-echo.ts'
import { WatchedServer, Witness } from '../helpers/secret-witness.ts'
import { leakList, Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

const json = (body: unknown): readonly Step[] => [{ status: 200, body, headers: { 'content-type': 'application/json' } }]

/** As a name: what a provider or a model may be called. */
const name = ({ key, all }: Sent) => `${key} ${all}`

/** What a list, a registry and a directory answer, by bad habit. */
const habits: Readonly<Record<string, (sent: Sent) => readonly Step[]>> = {
  'a 401 with the key': ({ key, all }) => [{ status: 401, body: { error: { message: `${key} ${all}` } } }],
  'a 500 with all headers': ({ all }) => [{ status: 500, body: all }],
  'a redirect with the key': ({ key, all }) => [
    { status: 302, body: all, headers: { location: `http://127.0.0.1:9/?k=${encodeURIComponent(key)}` } }
  ],
  'the key instead of JSON': ({ key, all }) => json(`${key} ${all}`),
  'the key in broken JSON': ({ key }) => json(`{"data":[{"id": ${key}`),
  'a model named as the key, without its size': sent => json({ data: [{ id: name(sent) }] }),
  'names made of the key': sent =>
    json({
      data: [{ id: name(sent), context_length: 1000, display_name: name(sent) }],
      [name(sent)]: {
        id: 'listed',
        name: name(sent),
        type: 'compat_chat',
        api: `http://127.0.0.1:9/v1?x=${encodeURIComponent(sent.key)}`,
        env: [name(sent)],
        models: { [name(sent)]: { id: name(sent), name: name(sent), limit: { context: 1000 } } }
      },
      other: { id: name(sent), name: name(sent), npm: name(sent), type: name(sent), models: {} }
    })
}

test('refresh, import and the catalog do not show what their sources repeat', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  await mkdir(home)
  const secrets = new Secrets()
  const witness = new Witness(home, secrets)
  let habit = 'a 401 with the key'
  const asked = new Map<string, Set<string>>()
  const upstream = await fakeUpstream(t, (_body, _n, request) => {
    const who = new URL(request.path, 'http://x').pathname
    asked.set(habit, (asked.get(habit) ?? new Set()).add(who))
    return habits[habit]!(sentBy(request))
  })
  const origin = new URL(upstream.url).origin
  const url = (path: string, who: string) =>
    `${origin.replace('://', `://me:${secrets.seed(`password of ${who}`)}@`)}${path}?token=${secrets.seed(`token of ${who}`, 'awkward').replaceAll(/[^\w]/g, '-')}`
  const registry = { url: url('/registry/api.json', 'registry'), api_key: secrets.seed('key of registry') }
  const config = {
    model_catalog: { refresh_on_start: false, refresh_interval_ms: 0 },
    providers: {
      list: {
        type: 'compat_chat',
        model_source: 'discover',
        base_url: url('/list', 'list'),
        api_key: secrets.seed('key of list'),
        custom_headers: { 'X-Team': secrets.seed('header of list') }
      },
      by_env: { type: 'svc', model_source: 'discover', env: { B_API_KEY: secrets.seed('key of env'), B_BASE_URL: url('/env', 'env') } },
      listed: { type: 'compat_chat', api_key: secrets.seed('key of listed'), source: { kind: 'apiJson', ...registry } }
    }
  }
  await writeFile(join(home, 'config.toml'), tomlFile(config))
  const server = await WatchedServer.start(t, witness, { HOME: dir, SVC_CODE_CATALOG_URL: url('/catalog/api.json', 'catalog') })
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const reads = async () => {
    for (const path of ['/providers', '/models', '/config', '/catalog/providers', '/auth']) await api('GET', path)
  }

  for (habit of Object.keys(habits)) {
    await api('POST', '/providers/list:refresh')
    await api('POST', '/providers:refresh')
    await api('POST', '/providers:import_registry', registry)
    await api('POST', '/providers:import_registry', { url: registry.url, api_key: secrets.seed(`other key for ${habit}`) })
    await reads()
    for (const one of (await api('GET', '/catalog/providers')).data?.items ?? []) {
      await api('GET', `/catalog/providers/${encodeURIComponent(one.id)}`)
      await api('POST', '/providers:import_catalog', {
        catalog_id: one.id,
        id: 'from catalog',
        api_key: secrets.seed(`import ${habit} ${one.id}`)
      })
    }
    await reads()
  }
  for (const one of Object.keys(habits)) assert.ok(asked.get(one)!.size >= 3, one)
  assert.ok([...asked.values()].some(paths => paths.has('/catalog/api.json')))
  assert.ok(socket.frames.some(frame => frame.type === 'event.config.changed'))
  await server.stop()
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
})
