/** No refusal repeats a secret that a request brought, in its right place or in a wrong one. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Document, operationsOf } from '../helpers/documents.ts'
import { WatchedServer, Witness } from '../helpers/secret-witness.ts'
import { leakList, Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

const models = [{ model: 'm', max_context_size: 1000 }]

test('a request that is refused does not get its secrets back, and nothing else keeps them', async t => {
  const dir = await freshDir()
  const [home, place] = [join(dir, 'home'), join(dir, 'place')]
  await mkdir(home)
  await mkdir(place)
  await writeFile(join(home, 'config.toml'), 'offline = true\n')
  const secrets = new Secrets()
  const witness = new Witness(home, secrets)
  const server = await WatchedServer.start(t, witness, { HOME: dir, SVC_CODE_PASSWORD: secrets.seed('server password', 'awkward') })
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const session_id = (await api('POST', '/sessions', { metadata: { cwd: place } })).data.id as string
  const { data: workspaces } = await api('GET', '/workspaces')
  const workspace_id = workspaces.items[0].id as string
  const s = secrets.seed('misplaced secret', 'awkward')
  const refused = async (method: string, path: string, body?: unknown) =>
    assert.notEqual((await api(method, path, body)).code, 0, `${method} ${path} took ${JSON.stringify(body)}`)

  // A provider with every kind of credential, created, replaced, imported.
  const url = `https://me:${secrets.seed('base_url password')}@h.invalid/v1?key=${secrets.seed('base_url key')}`
  const provider = { id: 'work', type: 'compat_chat', base_url: url, api_key: secrets.seed('api_key', 'awkward'), models }
  assert.equal((await api('POST', '/providers', provider)).code, 0)
  await refused('POST', '/providers', provider)
  assert.equal((await api('PUT', '/providers/work', { ...provider, api_key: secrets.seed('next api_key') })).code, 0)
  await refused('PUT', '/providers/nobody', provider)
  await refused('PUT', '/providers/work', { ...provider, models: [] })
  const imported = {
    catalog_id: 'local-chat',
    api_key: secrets.seed('imported api_key'),
    base_url: `http://u:${secrets.seed('imported password')}@h.invalid`
  }
  assert.equal((await api('POST', '/providers:import_catalog', imported)).code, 0)
  await refused('POST', '/providers:import_registry', {
    url: `https://u:${secrets.seed('registry password')}@h.invalid/api.json?token=${secrets.seed('registry token')}`,
    api_key: secrets.seed('registry api_key', 'awkward')
  })
  const patch = {
    providers: {
      work: { custom_headers: { 'X-Auth': secrets.seed('custom header', 'awkward') }, env: { W_TOKEN: secrets.seed('env value') } }
    },
    services: { svc_search: { api_key: secrets.seed('service api_key') } }
  }
  assert.equal((await api('POST', '/config', patch)).code, 0)

  // The same kinds where they do not belong.
  for (const wrong of [
    { api_key: { key: s } },
    { api_key: [s] },
    { id: s },
    { id: `${s}\n` },
    { type: s },
    { base_url: { url: s } },
    { base_url: `https://u:${s}@h/\${X}` },
    { default_model: { model: s } },
    { models: [{ model: 'm', max_context_size: s }] },
    { models: [{ model: 'm', max_context_size: 1, capabilities: [{ token: s }] }] },
    { models: s }
  ]) {
    await refused('POST', '/providers', { ...provider, id: 'other', ...wrong })
    if (!('id' in wrong)) await refused('PUT', '/providers/work', { ...provider, ...wrong })
  }
  await refused('PUT', '/providers/work', { ...provider, new_id: s })
  for (const work of [
    { api_key: { key: s } },
    { custom_headers: { 'X-Auth': [s] } },
    { custom_headers: { [s]: 5 } },
    { custom_headers: s },
    { env: { [s]: [s] } },
    { env: [s] },
    { oauth: { storage: s, key: [s] } },
    { source: { kind: 'apiJson', url: { token: s } } }
  ]) {
    await refused('POST', '/config', { providers: { work } })
  }
  for (const body of [
    { models: { 'work/m': { api_key: [s] } } },
    { models: { 'work/m': { max_context_size: s } } },
    { default_permission_mode: s },
    { default_model: { api_key: s } },
    { hooks: [{ event: s, command: s }] },
    { hooks: [{ event: 'Stop', command: 'x', token: s }] },
    { services: { svc_fetch: { api_key: { a: s }, custom_headers: { [s]: 1 } } } },
    { extra_skill_dirs: [{ token: s }] },
    { loop_control: { max_steps_per_turn: s } },
    { secondary_model: { models: { a: [s] } } },
    { yolo: s },
    { telemetry: { token: s } }
  ]) {
    await refused('POST', '/config', body)
  }
  await refused('POST', '/oauth/login', { region: s })
  for (const query of ['page_size', 'busy', 'before_id', 'workspace_id']) await api('GET', `/sessions?${query}=${encodeURIComponent(s)}`)

  const document: Document = await server.call('GET', '/openapi.json')
  const ids: Record<string, string> = { session_id, workspace_id, provider_id: 'work', model_id: 'work/m' }
  let sent = 0
  for (const { method, path, operation } of operationsOf(document)) {
    if (method === 'get' || path.endsWith('/shutdown')) continue
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? 'nobody'))
    const raw = (text: string, type = 'application/json') =>
      server.call(method.toUpperCase(), target, undefined, { raw: text, headers: { 'content-type': type } })
    await raw(`{"api_key":"${s}`)
    await raw(`{"api_key": ${s}}`)
    await raw(`api_key=${encodeURIComponent(s)}`, 'application/x-www-form-urlencoded')
    for (const body of [s, [s, { api_key: s }], ...misplaced(document, operation, s)]) {
      await server.call(method.toUpperCase(), target, body)
      sent++
    }
  }
  assert.ok(sent > 200, `${sent}`)

  // Credentials of the server itself.
  const wrong = `${secrets.get('server password')}!`
  const values = { authorization: `Bearer ${wrong}`, cookie: `token=${s}`, 'x-request-id': s, origin: `https://${s}` }
  for (const [name, value] of Object.entries(values)) await server.call('GET', '/api/v1/meta', undefined, { headers: { [name]: value } })
  socket.send(`{"type":"client_hello","payload":{"token":"${s}`)
  socket.send({ type: 'nothing', id: 'x', payload: { token: s } })
  await socket.request('subscribe', { session_ids: [{ token: s }], token: s })
  await socket.request('client_hello', { client_id: { token: s }, subscriptions: s })
  await socket.request('client_hello', { client_id: 'x', token: wrong })
  await socket.closed

  await server.stop()
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
})

/** One body per field of a request, with values of a type that it does not have. The metadata of a session is the user's own. */
function misplaced(document: Document, operation: Document, secret: string): unknown[] {
  const schema = follow(document, operation.requestBody?.content?.['application/json']?.schema)
  const parts = [schema, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]
  const names = new Set(parts.flatMap(one => Object.keys(follow(document, one).properties ?? {})))
  names.delete('metadata')
  const values = [{ token: secret }, [secret, [secret], { api_key: secret }], [{ type: secret, token: secret }]]
  return [...names].flatMap(name => values.map(value => ({ [name]: value })))
}

function follow(document: Document, schema: Document): Document {
  if (!schema?.$ref) return schema ?? {}
  return schema.$ref
    .slice(2)
    .split('/')
    .reduce((at: Document, key: string) => at[key], document)
}
