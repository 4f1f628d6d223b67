/**
 * The first hour of a person with the server, recorded: what the terminal shows, from a start on a fresh home over the demo and its printed
 * lines to what goes wrong with a real provider. Names, times and places that differ from run to run are replaced by words.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Running, serve } from '../helpers/cli.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { freshDir } from '../helpers/temp.ts'
import { chatWire } from '../helpers/upstream-chat.ts'

/** What a person saw so far. */
function seen(server: Running, home: string): string {
  return server
    .printed()
    .replaceAll(server.url, 'URL')
    .replaceAll(server.token, 'TOKEN')
    .replaceAll(home, 'HOME')
    .replace(/^svc-code \S+/m, 'svc-code VERSION')
    .replace(/^\d\d:\d\d:\d\d/gm, 'TIME')
    .replace(/session_[\w-]+/g, 'SESSION')
    .replace(/packs {3}\d+ active/, 'packs   N active')
}

/** The lines behind the start. */
const since = (server: Running, home: string) => seen(server, home).split(/^ {2}stop .*\n\n/m)[1] ?? ''

/** Resolves when the server has printed this. */
async function until(server: Running, pattern: RegExp): Promise<void> {
  while (!pattern.test(server.printed())) await once(server.child.stdout!, 'data')
}

async function call(server: Running, method: string, path: string, body?: unknown) {
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${server.token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
  return (await answer.json()) as { code: number; msg: string; details?: any; data: any }
}

async function stopped(server: Running): Promise<number | null> {
  server.child.kill('SIGTERM')
  return (await server.ended).code
}

const quick = '[packs.config.agent]\nretry_base_ms = 1\n'

test('a fresh home: the start says that no model is there and how to get one, the page at / what answers, the stop that it is done', async t => {
  const home = await freshDir()
  const server = await serve(t, home, '--port', '0')
  const { code, msg } = await call(server, 'POST', '/sessions', { metadata: { cwd: home } }).then(({ data }) =>
    call(server, 'POST', `/sessions/${data.id}/prompts`, { content: [{ type: 'text', text: 'hello' }] })
  )
  assert.deepEqual([code, msg], [40110, 'no provider is configured'])
  assert.match(await (await fetch(`${server.url}/`)).text(), /This is the local server of a coding agent/)

  assert.equal(await stopped(server), 0)

  assert.equal(
    seen(server, home),
    `svc-code VERSION is listening on URL

  token   TOKEN
  model   none: no provider is configured, so prompts are refused
          to try it without a key   npx svc-code --demo
          to use a real one         put it into HOME/config.toml, or for this start alone:
          SVC_CODE_MODEL_NAME=large-1 SVC_CODE_MODEL_API_KEY=... SVC_CODE_MODEL_PROVIDER_TYPE=compat_chat \\
          SVC_CODE_MODEL_BASE_URL=https://models.example/v1 npx svc-code
  home    HOME
  packs   N active
  stop    Ctrl+C, or POST URL/api/v1/shutdown

TIME stopping; press Ctrl+C again to force
TIME stopped
`
  )
})

test('--demo: a model is ready, and the printed lines lead a shell from a prompt over its approval to the answer', async t => {
  const home = await freshDir()
  const project = await freshDir()
  await writeFile(join(project, 'tea.txt'), 'assam\n')
  const server = await serve(t, home, '--port', '0', '--demo')
  const [start = '', rest = ''] = seen(server, home).split('  try  ')
  assert.match(start, /^ {2}model {3}demo\/demo is ready$/m)
  assert.match(rest, /^ {2}stop {4}Ctrl\+C/m)

  const lines = /^ {2}try {2}([\s\S]*?)\n\n/m.exec(server.printed())?.[1] ?? ''
  const shell = spawn('bash', ['-eu', '-c', lines], { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  shell.stdout.on('data', chunk => {
    text += String(chunk)
  })
  const [code] = (await once(shell, 'close')) as [number]

  assert.equal(code, 0)
  const [prompt, approval, messages] = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual([prompt.code, prompt.data.status], [0, 'running'])
  assert.deepEqual([approval.code, approval.data.resolved], [0, true])
  const said = messages.data.items.filter((one: { role: string }) => one.role === 'assistant')
  assert.match(JSON.stringify(said.at(-1)), /I look for the files/)
  assert.match(JSON.stringify(said), /I found 1 file: tea\.txt\. I run date\./)
  assert.equal(said[0].content[0].text, 'The command printed 1 line. That is all you asked for.')
  assert.match(
    since(server, home),
    /^TIME SESSION: asks for approval \(Running: date\), and no client listens; answer it with POST \/api\/v1\/sessions\/SESSION\/approvals\/\S+ \{"decision":"approved"\} or \{"decision":"rejected"\}\n$/
  )
  assert.equal(await stopped(server), 0)
})

/** A server whose models are wrong in one way each, and a session. */
async function wrong(t: TestContext) {
  const upstream = await fakeUpstream(t, ({ model }) =>
    model === 'm-key'
      ? [{ status: 401, body: chatWire.failure(401, 'Incorrect API key provided: sk-wrong-key-123456') }]
      : [{ status: 404, body: chatWire.failure(404, 'The model m-name does not exist') }]
  )
  const provider = (id: string, base_url: string) =>
    `[providers.${id}]\ntype = "compat_chat"\nbase_url = "${base_url}"\napi_key = "sk-wrong-key-123456"\n` +
    `[models."${id}/m"]\nprovider = "${id}"\nmodel = "m-${id}"\nmax_context_size = 1000\n`
  const home = await freshDir()
  const toml = [
    'default_model = "key/m"\n[loop_control]\nmax_attempts_per_step = 3\n',
    provider('key', upstream.url),
    provider('name', upstream.url),
    provider('dead', 'http://127.0.0.1:1/v1'),
    provider('plain', upstream.url.replace('http:', 'https:')),
    quick
  ]
  await writeFile(join(home, 'config.toml'), toml.join('\n'), { mode: 0o600 })
  const server = await serve(t, home, '--port', '0')
  const { id } = (await call(server, 'POST', '/sessions', { metadata: { cwd: home } })).data
  const ask = async (model: string) => {
    await call(server, 'POST', `/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'hello' }], model })
    await until(server, new RegExp(`the turn failed .*model ${model}:`))
    return (await call(server, 'GET', `/sessions/${id}/status`)).data.last_failure
  }
  return { home, server, ask, upstream }
}

test('a wrong key, a wrong model and a wrong address: each failed turn is a line that says what to look at, in the log and over REST, too', async t => {
  const { home, server, ask, upstream } = await wrong(t)
  assert.match(seen(server, home), /^ {2}model {3}key\/m is ready$/m)

  const key = await ask('key/m')
  const name = await ask('name/m')
  const dead = await ask('dead/m')
  const plain = await ask('plain/m')

  const host = `127.0.0.1:${upstream.port}`
  assert.equal(
    since(server, home),
    `TIME warning: SESSION: the turn failed [provider.auth_error] at provider key, model key/m: the provider answered HTTP 401: Incorrect API key provided: [redacted] (check the credential of provider key)
TIME warning: SESSION: the turn failed [provider.api_error] at provider name, model name/m: the provider answered HTTP 404: The model m-name does not exist (check base_url of provider name, and which model name/m names)
TIME warning: SESSION: failed twice in the same way, 1 more attempt in the next 1 s [provider.connection_error] at provider dead, model dead/m: the connection to 127.0.0.1:1 failed: nothing listens there (ECONNREFUSED) (check base_url of provider dead, and that it can be reached)
TIME warning: SESSION: the turn failed [provider.connection_error] at provider dead, model dead/m: the connection to 127.0.0.1:1 failed: nothing listens there (ECONNREFUSED) (check base_url of provider dead, and that it can be reached)
TIME warning: SESSION: the turn failed [provider.connection_error] at provider plain, model plain/m: the connection to ${host} failed: this port speaks http, not https (ERR_SSL_WRONG_VERSION_NUMBER) (check base_url of provider plain, and that it can be reached)
`
  )
  assert.deepEqual([key.code, key.status, key.provider_id, key.model], ['provider.auth_error', 401, 'key', 'key/m'])
  assert.deepEqual([name.code, name.status], ['provider.api_error', 404])
  assert.deepEqual([dead.code, dead.retryable, 'retry' in dead], ['provider.connection_error', true, false])
  assert.equal(plain.retryable, false)
  const log = (await readFile(join(home, 'logs', 'svc-code.log'), 'utf8')).split('\n')
  assert.equal(log.filter(line => line.includes('the turn failed') && JSON.parse(line).level === 40).length, 4)
  assert.equal(log.filter(line => / attempt \d of 3 failed/.test(line) && JSON.parse(line).level === 30).length, 2)
  assert.ok(!log.join().includes('sk-wrong-key'))
})

test('a provider without a credential is told at the start', async t => {
  const home = await freshDir()
  const toml = 'default_model = "a"\n[providers.work]\n[models.a]\nprovider = "work"\nmodel = "a"\nmax_context_size = 1\n'
  await writeFile(join(home, 'config.toml'), toml, { mode: 0o600 })
  const server = await serve(t, home, '--port', '0')
  assert.match(seen(server, home), /^ {2}model {3}a\n {10}warning: the default model a cannot be used: provider work has no base_url$/m)
})

test('a default model that does not exist is told at the start and by the readiness', async t => {
  const home = await freshDir()
  const toml = 'default_model = "work/larg"\n[providers.work]\nbase_url = "https://models.example/v1"\napi_key = "k"\n'
  await writeFile(join(home, 'config.toml'), toml, { mode: 0o600 })
  const server = await serve(t, home, '--port', '0')

  const warning = 'the default model work/larg cannot be used: model work/larg is not known'
  assert.ok(seen(server, home).includes(`  model   work/larg\n          warning: ${warning}\n`), seen(server, home))
  const { ready, warnings } = (await call(server, 'GET', '/auth')).data
  assert.deepEqual([ready, warnings], [true, [warning]])
  const refused = await call(server, 'POST', '/config', { providers: { work: { base_url: 'models.example' } } })
  assert.deepEqual(refused.details, [
    { path: 'body.providers.work.base_url', message: 'must be an address that begins with http:// or https://' }
  ])
})

test('a broken configuration is told with line and column at the start and while the server runs; a misspelt switch with the one that was meant', async t => {
  const home = await freshDir()
  const file = join(home, 'config.toml')
  await writeFile(file, '[providers.work\n', { mode: 0o600 })
  const server = await serve(t, home, '--port', '0')
  const [first] = seen(server, home).split('\n')
  assert.match(first!, /^warning: config\.toml cannot be used: line 1, column \d+: .*; it counts as empty$/)

  await writeFile(file, 'offlin = true\n')
  await until(server, /offlin is/)
  await writeFile(file, 'offline = true\ndefault_model = \n')
  await until(server, /line 2/)
  const patched = await call(server, 'POST', '/config', { offlin: true })

  const lines = since(server, home).split('\n')
  assert.equal(lines[0], 'TIME config.toml is used again')
  assert.equal(lines[1], 'TIME warning: config.toml: offlin is unknown; did you mean offline?')
  assert.match(lines[2]!, /^TIME warning: config\.toml cannot be used: line 2, column \d+: .*; the last good content is used$/)
  assert.match(patched.msg, /^config\.toml cannot be used, fix it first: line 2, column \d+/)
})
