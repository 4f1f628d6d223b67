import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { run, serve } from '../../helpers/cli.ts'
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
