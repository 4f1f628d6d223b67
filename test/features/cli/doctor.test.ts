import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { run, serve } from '../../helpers/cli.ts'
import { command } from '../../helpers/cli-io.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { freshDir } from '../../helpers/temp.ts'

test('doctor --network lists hosts with pack and reason, without secrets, calls nobody, and says what offline refuses', async t => {
  const home = await freshDir()
  const local = await fakeUpstream(t, [[{ status: 200, body: { data: [] } }]])
  await writeFile(
    join(home, 'config.toml'),
    `[providers.away]\nbase_url = "https://someone:pass-word@models.invalid/v1?key=in-query"\n
     [providers.local]\nbase_url = "${local.url}"\nmodel_source = "discover"\n
     [providers.team]\nbase_url = "${local.url}"\nsource = { kind = "apiJson", url = "https://registry.invalid/api.json" }\n
     [packs.config.oauth]\noauth_host = "https://login.invalid"\napi_base_url = "https://account.invalid/v1"\n`
  )
  const online = await run(home, 'doctor', '--network')
  assert.equal(online.code, 0)
  assert.match(online.stdout, /^llm +https:\/\/models\.invalid +models of provider away +a turn/m)
  assert.match(online.stdout, /^catalog +\(as named\) +a private registry/m)
  assert.match(online.stdout, /^providers +https:\/\/registry\.invalid +a private registry/m)
  assert.match(online.stdout, /^oauth +https:\/\/login\.invalid +the managed login/m)
  assert.match(online.stdout, /^oauth +https:\/\/account\.invalid +the account service/m)
  assert.match(online.stdout, /the server is not offline: all of these may be called/)
  assert.doesNotMatch(online.stdout, /pass-word|in-query/)

  const offline = (await run(home, 'doctor', '--network', '--offline')).stdout
  assert.match(offline, /^llm +https:\/\/models\.invalid +refused/m)
  assert.match(offline, new RegExp(`^llm +${new URL(local.url).origin} +allowed`, 'm'))
  assert.match(offline, /the server runs offline \(--offline or SVC_CODE_OFFLINE\)/)
  assert.equal(local.requests.length, 0)

  assert.match((await run(home, 'doctor', '--network', '--disable', 'llm')).stdout, /llm pack is not active/)
})

test('a server that was started offline says so', async t => {
  const server = await serve(t, await freshDir(), '--port', '0', '--offline')
  assert.match(server.printed(), /^ {2}network offline: only configured providers on this machine are called$/m)
})

test('doctor without a subject checks everything: what is well, what to look at, and what fails with code 1', async t => {
  const upstream = await fakeUpstream(t, (_body, _n, { headers }) =>
    headers.authorization === 'Bearer right' ? [{ status: 200, body: { data: [{ id: 'a' }, { id: 'b' }] } }] : [{ status: 401, body: {} }]
  )
  const home = await freshDir()
  const provider = (id: string, url: string, key: string) =>
    `[providers.${id}]\ntype = "compat_chat"\nbase_url = "${url}"\napi_key = "${key}"\n`
  const model = '[models.m]\nprovider = "good"\nmodel = "a"\nmax_context_size = 1000\n'
  const config = join(home, 'config.toml')
  await writeFile(config, `default_model = "m"\n${provider('good', upstream.url, 'right')}${model}`, { mode: 0o600 })

  const well = await command(home, ['doctor'])
  assert.equal(well.code, 0, well.stdout)
  assert.match(well.stdout, /^ok +home +\//m)
  assert.match(well.stdout, /^ok +disk +[\d.]+ GiB are free$/m)
  assert.match(well.stdout, /^(ok|warning) +port +/m)
  assert.match(well.stdout, /^ok +packs +\d+ active$/m)
  assert.match(well.stdout, /^ok +model +the default model is m$/m)
  assert.match(well.stdout, /^ok +provider good +answers, and lists 2 models$/m)
  assert.match(well.stdout, /^ok +network +packs may call \d+ hosts/m)
  assert.equal(upstream.requests.length, 1)

  const bad = provider('wrong', upstream.url, 'wrong-key') + provider('away', 'http://127.0.0.1:1/v1', 'k')
  await writeFile(config, `offlin = true\ndefault_model = "m"\n${provider('good', upstream.url, 'right')}${model}${bad}`)
  const ill = await command(home, ['doctor', '--json'])
  assert.equal(ill.code, 1)
  const { checks } = JSON.parse(ill.stdout) as { checks: { subject: string; state: string; text: string }[] }
  const of = (subject: string) => checks.filter(one => one.subject === subject).map(one => `${one.state} ${one.text}`)
  assert.match(of('provider wrong').join(), /^failed the credential was refused \(HTTP 401\)$/)
  assert.match(of('provider away').join(), /^failed .*ECONNREFUSED/)
  assert.match(of('configuration').join(), /warning .*offlin/)
  assert.doesNotMatch(ill.stdout, /wrong-key/)

  await writeFile(config, `default_model = "gone"\n${provider('good', upstream.url, 'right')}${model}`)
  const lost = await command(home, ['doctor'])
  assert.equal(lost.code, 1)
  assert.match(lost.stdout, /^failed +model +the default model gone cannot be used: model gone is not known; svc-code models use <alias>/m)
  assert.doesNotMatch(lost.stdout, /the default model is|^warning +model/m)

  await writeFile(config, 'default_model = "m"\nthinking = {\n')
  const broken = await command(home, ['doctor'])
  assert.equal(broken.code, 1)
  assert.match(broken.stdout, /^failed +configuration +.*config\.toml:\d+:\d+: /m)
  const fresh = await command(join(home, 'none'), ['doctor'])
  assert.deepEqual([fresh.code, /is not there yet/.test(fresh.stdout)], [0, true])
})

test('doctor tells which MCP servers cannot be used, and of their file when it is none', async () => {
  const home = await freshDir()
  const file = join(home, 'mcp.json')
  const told = async () =>
    (await command(home, ['doctor', '--offline'])).stdout.match(/^.* mcp .*$/gm)?.map(line => line.replace(/ +/g, ' '))
  assert.equal(await told(), undefined)
  await writeFile(file, JSON.stringify({ mcpServers: { good: { command: 'node' }, bad: { command: 'node', args: 'x' } } }))
  assert.deepEqual(await told(), [
    'ok mcp a server is configured',
    `failed mcp the server bad cannot be used: args expected array (${file})`
  ])
  await writeFile(file, '{')
  assert.deepEqual(await told(), [`failed mcp ${file}: it is no JSON`])
})

test('a server that runs and does not answer is a failure, and is no server that is not there', async t => {
  const home = await freshDir()
  const { child } = await serve(t, home, '--port', '0')
  const silent = new RegExp(`the server at http://127\\.0\\.0\\.1:\\d+ \\(pid ${child.pid}\\) does not answer`)
  child.kill('SIGSTOP')
  try {
    const [doctor, packs] = await Promise.all([command(home, ['doctor']), command(home, ['packs'])])
    assert.equal(doctor.code, 1)
    assert.match(doctor.stdout, new RegExp(`^failed +server +${silent.source}`, 'm'))
    assert.match(packs.stderr, silent)
  } finally {
    child.kill('SIGCONT')
  }
})
