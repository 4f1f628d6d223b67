/** Broken files and odd values: neither log, answer, output nor tool quotes what stands in them. */
import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { tomlFile } from '../helpers/secret-config.ts'
import { WatchedServer, Witness, watchedRun } from '../helpers/secret-witness.ts'
import { leakList, Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

async function place() {
  const dir = await freshDir()
  const [home, cwd] = [join(dir, 'home'), join(dir, 'place')]
  await mkdir(join(home, 'credentials'), { recursive: true, mode: 0o700 })
  await mkdir(cwd)
  const secrets = new Secrets()
  const witness = new Witness(home, secrets)
  /** At once, as editors do. */
  const write = async (file: string, content: string | Buffer, mode = 0o600) => {
    await writeFile(join(home, `${file}~`), content, { mode })
    await chmod(join(home, `${file}~`), mode)
    await rename(join(home, `${file}~`), join(home, file))
  }
  return { dir, home, cwd, secrets, witness, write }
}

async function clean(witness: Witness): Promise<void> {
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
}

test('a configuration that cannot be read is named by its line, never by its text', async t => {
  const { dir, secrets, witness, write } = await place()
  const s = (name: string) => secrets.seed(name)
  const broken: Readonly<Record<string, string | Buffer>> = {
    'an open string': `[providers.p]\napi_key = "${s('open string')}\n`,
    'no value': `${s('lonely word')}\n`,
    'no key': `= "${s('no key')}"\n`,
    'no quotes': `api_key = ${s('no quotes')}\n`,
    'an open header': `[providers.${s('open header')}\n`,
    'a key twice': `token = "${s('first of two')}"\ntoken = "${s('second of two')}"\n`,
    'a control character': `token = "${s('control')}\u0001"\n`,
    'an open list': `tokens = ["${s('open list')}"`,
    'an open long string': `token = """${s('long string')}\n`,
    'no UTF-8': Buffer.concat([Buffer.from(`token = "${s('no UTF-8')}`), Buffer.from([0xff, 0xfe])])
  }
  const server = await WatchedServer.start(t, witness, { HOME: dir })
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const provider = { id: 'p', type: 'compat_chat', models: [{ model: 'm', max_context_size: 1 }] }
  for (const [name, content] of Object.entries(broken)) {
    await write('config.toml', content)
    for (const path of ['/config', '/providers', '/models', '/auth', '/meta', '/oauth/region']) await api('GET', path)
    const refused = [
      await api('POST', '/config', { telemetry: false, api_key: secrets.get('open string') }),
      await api('POST', '/providers', provider),
      await api('POST', '/models/x:set_default')
    ]
    assert.deepEqual(
      refused.map(({ code }) => code),
      [40001, 40001, 40001],
      name
    )
    await api('POST', '/providers:refresh')
    await api('POST', '/oauth/logout', {})
  }
  await server.stop()
  await watchedRun(witness, { HOME: dir }, ['packs'])
  await write('config.toml', `[packs]\ndisable = ["tools-shell"]\n[packs.config.x]\ntoken = "${s('of a pack')}\n`)
  for (const args of [['serve', '--port', '0'], ['packs']]) assert.equal((await watchedRun(witness, { HOME: dir }, args)).code, 1)
  await clean(witness)
})

test('values of a wrong type, in the file or the environment, are not quoted', async t => {
  const { dir, home, cwd, secrets, witness, write } = await place()
  const upstream = await fakeUpstream(t, [[{ text: 'ok' }]])
  const s = (name: string) => secrets.seed(name)
  // Where nothing says that it is a secret, the configuration shows it; the log does not.
  const odd = secrets.seed('odd value')
  await write(
    'config.toml',
    tomlFile({
      default_model: 'm',
      telemetry: odd,
      plan_mode: [odd],
      thinking: { effort: [odd] },
      loop_control: { max_retries_per_step: odd, max_steps_per_turn: odd },
      hooks: [{ event: odd, command: 'true' }],
      secondary_model: { model: [odd], api_key: [s('secondary')] },
      services: { svc_search: { api_key: { x: s('service api_key') }, custom_headers: [s('service headers')] } },
      providers: {
        p: { type: 'compat_chat', base_url: upstream.url, api_key: s('right api_key') },
        list: { type: 'compat_chat', api_key: [s('api_key in a list')], base_url: [odd] },
        header: { type: 'compat_chat', custom_headers: { 'X-A': [s('header in a list')], [s('header name')]: 5 } },
        variable: { type: 'compat_chat', env: { A_API_KEY: [s('variable in a list')], [s('variable name')]: 5 } },
        source: { type: 'compat_chat', source: { kind: 'apiJson', url: 5, api_key: [s('source key in a list')] } },
        login: { type: 'svc', oauth: { storage: 'file', key: [s('login key in a list')] } },
        newline: { type: 'compat_chat', base_url: upstream.url, api_key: `${s('api_key of two lines')}\n${s('second line')}` },
        latin: {
          type: 'compat_chat',
          auth: 'none',
          base_url: upstream.url,
          custom_headers: { 'X-A': `${s('header that cannot be sent')}\u0007` }
        },
        nohost: { type: 'compat_chat', base_url: `https://u:${s('password without a host')}@`, api_key: s('key for no host') },
        nourl: { type: 'compat_chat', base_url: `u:${s('password of no URL')}@h`, api_key: s('key for no URL') }
      },
      models: {
        m: { provider: 'p', model: 'm', max_context_size: 64_000 },
        ...Object.fromEntries(
          ['newline', 'latin', 'nohost', 'nourl', 'list', 'header', 'variable'].map(provider => [
            provider,
            { provider, model: 'm', max_context_size: 64_000 }
          ])
        ),
        size: { provider: 'p', model: 'm', max_context_size: odd },
        key: {
          provider: 'p',
          model: 'm',
          max_context_size: 1,
          api_key: [s('model key in a list')],
          overrides: { api_key: { a: s('override') } }
        }
      },
      packs: { config: { catalog: { patience_ms: odd } } }
    })
  )
  const env = {
    HOME: dir,
    SVC_CODE_PASSWORD: s('server password'),
    SVC_CODE_MODEL_NAME: 'e',
    SVC_CODE_MODEL_API_KEY: s('environment key'),
    SVC_CODE_MODEL_BASE_URL: `https://u:${s('environment URL password')}@e.invalid/v1`,
    SVC_CODE_MODEL_MAX_CONTEXT_SIZE: s('size of the environment'),
    SVC_CODE_LOOP_MAX_STEPS_PER_TURN: s('steps of the environment'),
    SVC_CODE_SUBAGENT_TIMEOUT_MS: s('timeout of the environment'),
    SVC_CODE_CUSTOM_HEADERS: `X-Any: ${s('header of the environment')}`,
    SVC_CODE_OAUTH_HOST: `https://u:${s('oauth host password')}@`,
    SVC_CODE_API_BASE_URL: s('no URL of a service'),
    SVC_CODE_OAUTH_CLIENT_ID: 'c',
    SVC_CODE_WEB_FETCH_API_KEY: s('fetch key'),
    SVC_CODE_OFFLINE: '0',
    HTTPS_PROXY: `http://u:${s('proxy password')}@:no port`
  }
  const server = await WatchedServer.start(t, witness, env)
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown, allowed: string[] = []): Promise<Json> =>
    server.call(method, `/api/v1${path}`, body, { allowed })
  await api('GET', '/config', undefined, ['odd value'])
  for (const path of [
    '/providers',
    '/models',
    '/auth',
    '/meta',
    '/oauth/region',
    '/oauth/usage',
    '/providers/newline',
    '/providers/list'
  ]) {
    await api('GET', path, undefined, path === '/providers/newline' ? ['api_key of two lines', 'second line'] : [])
  }
  await api('POST', '/oauth/login', {})
  await api('POST', '/providers:refresh')
  const session_id = (await api('POST', '/sessions', { metadata: { cwd } })).data.id as string
  await socket.request('subscribe', { session_ids: [session_id] })
  const ends: string[] = []
  for (const model of ['m', 'newline', 'latin', 'nohost', 'nourl', 'list', 'header', 'variable', 'size', 'key', 'environment/e']) {
    const { code, data } = await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'hello' }], model })
    if (code !== 0) continue
    const end = await socket.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === data.prompt_id)
    ends.push(end.payload.reason)
  }
  assert.ok(ends.includes('completed') && ends.includes('failed'), ends.join())
  await api('GET', `/sessions/${session_id}/messages`)
  await server.stop()
  assert.match(await readFile(join(home, 'logs', 'svc-code.log'), 'utf8'), /no longer read/)
  await watchedRun(witness, env, ['doctor', '--network'])
  await clean(witness)
})

test('a command that the model runs does not see the secrets of the server', async t => {
  const { dir, cwd, secrets, witness, write } = await place()
  const upstream = await fakeUpstream(t, [[{ tool: { name: 'Bash', args: { command: 'env; export; echo done' } } }], [{ text: 'ok' }]])
  const s = (name: string) => secrets.seed(name, 'awkward')
  await write(
    'config.toml',
    tomlFile({
      default_permission_mode: 'yolo',
      default_model: 'm',
      providers: { p: { type: 'compat_chat', base_url: upstream.url, api_key: s('api_key') } },
      models: { m: { provider: 'p', model: 'm', max_context_size: 64_000 } }
    })
  )
  const server = await WatchedServer.start(t, witness, {
    HOME: dir,
    SVC_CODE_PASSWORD: s('password'),
    SVC_CODE_MODEL_API_KEY: s('key'),
    SVC_CODE_MODEL_BASE_URL: `https://u:${encodeURIComponent(s('password of a model URL'))}@e.invalid/v1?key=${encodeURIComponent(s('key of a model URL'))}`,
    SVC_CODE_CUSTOM_HEADERS: `X-Any: ${s('header')}`,
    SVC_CODE_API_BASE_URL: `https://u:${encodeURIComponent(s('password of a service'))}@e.invalid`,
    SVC_CODE_WEB_SEARCH_API_KEY: s('search key'),
    SVC_CODE_WEB_FETCH_BASE_URL: `https://${encodeURIComponent(s('token of a fetch URL'))}@f.invalid`,
    SVC_CODE_CATALOG_URL: `https://c.invalid/?token=${encodeURIComponent(s('token of a catalog'))}`
  })
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const session_id = (await api('POST', '/sessions', { metadata: { cwd } })).data.id as string
  await socket.request('subscribe', { session_ids: [session_id] })
  await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'hello' }] })
  await socket.next('prompt.completed')
  const { data } = await api('GET', `/sessions/${session_id}/messages`)
  const said = JSON.stringify(data)
  assert.match(said, /SVC_CODE_HOME=/)
  assert.doesNotMatch(said, /SVC_CODE_(?:PASSWORD|[A-Z_]*KEY|[A-Z_]*URL|CUSTOM_HEADERS)=/)
  await server.stop()
  await clean(witness)
})

test('damaged credentials and token files are not quoted', async t => {
  const { dir, secrets, witness, write } = await place()
  const s = (name: string) => secrets.seed(name)
  const upstream = await fakeUpstream(t, [[{ text: 'ok' }]])
  await write(
    'config.toml',
    tomlFile({
      providers: { 'managed:svc-code': { type: 'svc', base_url: upstream.url, oauth: { storage: 'file', key: 'svc-code' } } },
      models: { m: { provider: 'managed:svc-code', model: 'm', max_context_size: 64_000 } }
    })
  )
  const server = await WatchedServer.start(t, witness, { HOME: dir })
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const session_id = (await api('POST', '/sessions', { metadata: { cwd: dir } })).data.id as string
  const fields = { expires_at: 1, scope: '', token_type: 'Bearer', expires_in: 1 }
  for (const content of [
    `{"access_token":"${s('open string')}`,
    JSON.stringify({ ...fields, access_token: [s('token in a list')], refresh_token: { a: s('token in a table') } }),
    JSON.stringify({ ...fields, access_token: s('token that is over'), refresh_token: s('token that nobody renews') }),
    JSON.stringify({ $version: 9, access_token: s('token of a newer version') }),
    `token=${s('no JSON')}`
  ]) {
    await write('credentials/svc-code.json', content)
    for (const path of ['/auth', '/oauth/usage', '/oauth/userinfo', '/providers']) await api('GET', path)
    await api('POST', '/providers:refresh')
    await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'hello' }], model: 'm' })
    await api('POST', '/oauth/login', {})
  }
  await write('server.token', `${s('token that others can read')}\n`, 0o644)
  await server.call('GET', '/api/v1/meta')
  await server.call('GET', '/api/v1/meta', undefined, { headers: { authorization: `Bearer ${secrets.get('token that others can read')}` } })
  await server.stop()
  await watchedRun(witness, { HOME: dir }, ['serve', '--port', '0'])
  await clean(witness)
})
