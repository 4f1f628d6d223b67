/** No secret of a configuration, an environment or a request leaves the server: every route, every event, every document, every file. */
import assert from 'node:assert/strict'
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Document, operationsOf } from '../helpers/documents.ts'
import { secretConfig, secretEnvironment, toml, tomlFile } from '../helpers/secret-config.ts'
import { WatchedServer, Witness, watchedRun } from '../helpers/secret-witness.ts'
import { leakList, Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

async function secretHome() {
  const dir = await freshDir()
  const [home, place] = [join(dir, 'home'), join(dir, 'place')]
  await mkdir(join(home, 'credentials'), { recursive: true, mode: 0o700 })
  await mkdir(place)
  const secrets = new Secrets()
  const config = secretConfig(secrets)
  const more = { loop_control: { max_attempts_per_step: 2 } }
  await writeFile(join(home, 'config.toml'), tomlFile({ ...config, ...more }), { mode: 0o600 })
  const credential = {
    access_token: secrets.seed('stored access token'),
    refresh_token: secrets.seed('stored refresh token'),
    expires_at: Date.now() / 1000 + 3600,
    scope: 'all',
    token_type: 'Bearer',
    expires_in: 3600
  }
  await writeFile(join(home, 'credentials', 'svc-code.json'), JSON.stringify(credential), { mode: 0o600 })
  return { home, place, secrets, env: { ...secretEnvironment(secrets), HOME: dir } }
}

async function clean(witness: Witness): Promise<void> {
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
}

test('no secret of the configuration or the environment shows in any answer, event, document, output or file', async t => {
  const { home, place, secrets, env } = await secretHome()
  const witness = new Witness(home, secrets)
  const server = await WatchedServer.start(t, witness, env)
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown) => server.call(method, `/api/v1${path}`, body) as Promise<Json>

  const session_id = (await api('POST', '/sessions', { metadata: { cwd: place } })).data.id as string
  await socket.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq: 0 } } })
  for (const model of ['environment/from-env', 'plain/m']) {
    const seen = socket.frames.length
    const sent = await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'hello' }], model })
    assert.equal(sent.code, 0, sent.msg)
    await socket.next(frame => frame.type === 'turn.ended' && socket.frames.indexOf(frame) >= seen)
  }

  const { data: messages } = await api('GET', `/sessions/${session_id}/messages`)
  const { data: workspaces } = await api('GET', '/workspaces')
  const ids: Record<string, string> = {
    session_id,
    message_id: messages.items[0].id,
    workspace_id: workspaces.items[0].id,
    provider_id: 'plain',
    model_id: 'plain/m',
    catalog_id: 'local-chat',
    file_id: 'none',
    path: 'none',
    name: 'meta',
    task_id: 'bash-00000000',
    agent_id: 'main',
    since_seq: '0',
    terminal_id: 'none',
    capability_id: 'svc-webbridge',
    key: 'none',
    status: 'pending'
  }
  const own: Record<string, string[]> = { plain: ['provider api_key'], token: ['key of a provider called token'] }
  const document = (await documentOf(server)) as Document
  const reads = operationsOf(document).filter(({ method }) => method === 'get')
  for (const { path, operation } of reads) {
    const query = (operation.parameters ?? []).filter((one: Json) => one.in === 'query' && one.required).map((one: Json) => one.name)
    const answer = await server.call('GET', filled(path, query, ids), undefined, {
      allowed: path.endsWith('{provider_id}') ? own.plain! : []
    })
    assert.ok(answer.status !== 404 || /\/(media|files)\/\{file_id\}$/.test(path), path)
  }
  for (const id of ['by_env', 'token', 'managed:svc-code', 'strange', 'environment']) {
    await server.call('GET', `/api/v1/providers/${encodeURIComponent(id)}`, undefined, { allowed: own[id] ?? [] })
  }
  assert.ok(reads.length > 20)

  const changes = socket.frames.filter(frame => frame.type === 'event.config.changed').length
  await api('POST', '/config', { telemetry: false, loop_control: { max_steps_per_turn: 5 } })
  await appendFile(join(home, 'config.toml'), `\n[later]\ntoken = ${toml(secrets.seed('token added by hand'))}\n`)
  await api('GET', '/config')
  const changed = socket.frames.filter(frame => frame.type === 'event.config.changed')
  assert.ok(changed.length >= changes + 1)

  await socket.request('client_hello', { client_id: 'x', token: `${secrets.get('server password')}-wrong` })
  await server.call('GET', '/api/v1/meta', undefined, { headers: { authorization: `Bearer ${secrets.get('server password')}` } })
  await server.call('GET', `/api/v1/meta?token=${secrets.get('server.token')}`, undefined, { headers: { authorization: 'Bearer x' } })

  for (const args of [['packs'], ['instances']]) assert.equal((await watchedRun(witness, env, args)).code, 0)
  assert.equal((await server.stop()).code, 0)
  for (const args of [['packs'], ['doctor', '--network']]) assert.equal((await watchedRun(witness, env, args)).code, 0)
  assert.equal((await watchedRun(witness, env, ['token'], ['server.token'])).code, 0)
  assert.match(await readFile(join(home, 'logs', 'svc-code.log'), 'utf8'), /"level":20/)
  await clean(witness)
})

async function documentOf(server: WatchedServer): Promise<object> {
  const answer: Json = await server.call('GET', '/openapi.json')
  return answer
}

function filled(path: string, query: readonly string[], ids: Readonly<Record<string, string>>): string {
  const id = (name: string): string => {
    const value = ids[name]
    if (value === undefined) throw new Error(`the test has no ${name}`)
    return encodeURIComponent(value)
  }
  const target = path.replace(/\{\+?(\w+)\}/g, (_, name: string) => id(name))
  return query.length === 0 ? target : `${target}?${query.map(name => `${name}=${id(name)}`).join('&')}`
}
