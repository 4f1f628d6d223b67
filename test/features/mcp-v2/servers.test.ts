import assert from 'node:assert/strict'
import { lstat, mkdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Entry, Mcp } from '../../../features/mcp/index.ts'
import {
  addManaged,
  deleteManaged,
  inspectServers,
  listManaged,
  readAuthStatuses,
  readManaged,
  testServer,
  updateManaged
} from '../../../features/mcp-v2/index.ts'
import { statuses, tryServer } from '../../../features/mcp-v2/inspect.ts'
import mcpV2 from '../../../features/mcp-v2/pack.ts'
import { installPlugin } from '../../../features/plugins/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { trustWorkspace } from '../../../features/workspaces/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { inEachDisguise } from '../../helpers/disguises.ts'
import { freshDir } from '../../helpers/temp.ts'
import { start as startMcp, stdio, web, writeJson } from '../mcp/scene.ts'

const start = (t: TestContextLike, servers: object) => startMcp(t, servers, { packs: [mcpV2] })
type Scene = Awaited<ReturnType<typeof start>>

async function trust(scene: Scene): Promise<void> {
  await mkdir(join(scene.cwd, '.git'))
  const { workspace_id } = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  await scene.call(trustWorkspace, { params: { workspace_id } })
}

test('a file of servers that is none is told, and nothing is written over it', async t => {
  const scene = await start(t, {})
  const file = join(scene.home, 'mcp.json')
  await inEachDisguise(file, async what => {
    const { ino } = await lstat(file)
    const { code, details } = await scene.call(addManaged, { body: { name: 'db', transport: 'stdio', command: 'node' } })
    assert.equal(code, 40001, what)
    assert.match(details?.[0]?.message ?? '', /^it is (?:not a regular file|larger than 4194304 bytes)$/, what)
    assert.equal((await lstat(file)).ino, ino)
  })
})

test('a change that would make the file larger than can be read is refused, and a link to the file stays a link', async t => {
  const scene = await start(t, {})
  const file = join(scene.home, 'mcp.json')
  const elsewhere = join(await freshDir(), 'servers.json')
  const padding = 'x'.repeat(4 * 1024 * 1024 - 100)
  await rm(file, { force: true })
  await symlink(elsewhere, file)
  const add = async (name: string) => await scene.call(addManaged, { body: { name, transport: 'stdio', command: 'node' } })

  assert.equal((await add('db')).code, 0)
  const { mcpServers } = JSON.parse(await readFile(elsewhere, 'utf8')) as { mcpServers: object }
  assert.deepEqual(Object.keys(mcpServers), ['db'])
  await writeFile(elsewhere, JSON.stringify({ padding }))
  const { code, details } = await add('files')

  assert.deepEqual([code, details?.[0]?.message], [40001, 'it could not be saved: it would be larger than 4194304 bytes'])
  assert.deepEqual([await readFile(elsewhere, 'utf8'), await readlink(file)], [JSON.stringify({ padding }), elsewhere])
})

test('servers are added, replaced and removed in the file of the user, and everything else in it stays', async t => {
  const scene = await start(t, {})
  const file = join(scene.home, 'mcp.json')
  await writeFile(file, `\ufeff${JSON.stringify({ other: { kept: true }, mcpServers: { old: { url: 'https://old.example/mcp' } } })}`)
  const added = await scene.call(addManaged, { body: { name: ' db ', transport: 'stdio', command: 'node', env: { KEY: 'secret' } } })
  const db = {
    name: 'db',
    config: { transport: 'stdio', command: 'node', env: { KEY: 'secret' } },
    source: 'global',
    origin: file,
    mutable: true
  }
  const old = { name: 'old', config: { url: 'https://old.example/mcp', transport: 'http' }, source: 'global', origin: file, mutable: true }
  assert.deepEqual(added.data, [old, db])
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), {
    other: { kept: true },
    mcpServers: { old: { url: 'https://old.example/mcp' }, db: db.config }
  })
  assert.deepEqual((await scene.call(readManaged, { params: { name: 'db' } })).data, db)
  const changed = await scene.call(updateManaged, { params: { name: 'db' }, body: { transport: 'sse', url: 'https://db.example/sse' } })
  assert.deepEqual(changed.data[1]?.config, { transport: 'sse', url: 'https://db.example/sse' })
  assert.deepEqual(
    (await scene.call(deleteManaged, { params: { name: 'old' } })).data.map(({ name }) => name),
    ['db']
  )
  assert.deepEqual(
    (await scene.call(listManaged, {})).data.map(({ name }) => name),
    ['db']
  )
})

test('what is wrong is named, and the file stays as it is', async t => {
  const scene = await start(t, { db: { command: 'node' } })
  const before = await readFile(join(scene.home, 'mcp.json'), 'utf8')
  const add = (body: object) => scene.rest.json('POST', '/api/v2/mcp/servers', body)
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ name: 'a', command: 'x' }, /"body.transport"/],
    [{ name: 'a', transport: 'http' }, /"body.url"/],
    [{ name: 'a', transport: 'http', url: 'nonsense' }, /"body.url"/],
    [{ name: 'a', transport: 'sse', url: 5 }, /"body.url"/],
    [{ name: 'a', transport: 'stdio' }, /"body.command"/],
    [{ name: 'a', transport: 'stdio', command: 'x', env: { 'A\nB': 5 } }, /"body.env.A\\nB"/],
    [{ name: 'a', transport: 'stdio', command: 'x', toolTimeoutMs: 0 }, /"body.toolTimeoutMs"/],
    [{ name: 'a', transport: 'stdio', command: 'x\0' }, /"body.command"/],
    [{ name: 'a', transport: 'stdio', command: 'x', args: ['a', 'LEAK\0'], cwd: '/\0' }, /"body.args.1".*"body.cwd"/],
    [{ name: 'a', transport: 'stdio', command: 'x', env: { A: 'LEAK\0' } }, /"body.env.A"/],
    [{ name: 'a', transport: 'http', url: 'http://a', headers: { A: 'LEAK\n1', 'B C': 'LEAK' } }, /"body.headers.A".*"body.headers.B C"/],
    [{ name: '  ', transport: 'stdio', command: 'x' }, /"body.name"/],
    [{ name: 'a\nb', transport: 'stdio', command: 'x' }, /"body.name"/],
    [{ name: 'x'.repeat(501), transport: 'stdio', command: 'x' }, /"body.name"/],
    [{ name: '..', transport: 'stdio', command: 'x' }, /"body.name"/],
    [{ name: 'db', transport: 'stdio', command: 'x' }, /already exists/]
  ]
  for (const [body, reason] of wrong) {
    const answer = await add(body)
    assert.equal(answer.code, 40001)
    assert.match(JSON.stringify(answer), reason)
    assert.doesNotMatch(JSON.stringify(answer), /LEAK/)
  }
  assert.equal((await scene.call(updateManaged, { params: { name: 'none' }, body: { transport: 'stdio', command: 'x' } })).code, 40408)
  assert.equal((await scene.call(deleteManaged, { params: { name: 'none' } })).code, 40408)
  assert.equal((await scene.call(readManaged, { params: { name: 'none' } })).code, 40408)
  assert.equal((await scene.call(listManaged, { query: { cwd: 'relative' } })).details?.[0]?.path, 'query.cwd')
  assert.equal((await scene.call(inspectServers, { body: { cwd: 'relative' } })).details?.[0]?.path, 'body.cwd')
  assert.equal(await readFile(join(scene.home, 'mcp.json'), 'utf8'), before)
  await writeFile(join(scene.home, 'mcp.json'), '{ "mcpServers": ')
  assert.equal((await add({ name: 'a', transport: 'stdio', command: 'x' })).code, 40001)
  assert.equal((await scene.call(listManaged, {})).code, 40001)
  assert.equal(await readFile(join(scene.home, 'mcp.json'), 'utf8'), '{ "mcpServers": ')
})

test('a server of the file that cannot be used is shown as it stands there, says why, and can be replaced and removed', async t => {
  const scene = await start(t, { db: { command: 'node', args: 'x' }, web: 5, good: { command: 'node' } })
  const shown = (data: readonly { name: string; config: object }[]) => data.map(({ name, config }) => [name, config])
  assert.deepEqual(shown((await scene.call(listManaged, {})).data), [
    ['db', { command: 'node', args: 'x' }],
    ['web', {}],
    ['good', { transport: 'stdio', command: 'node' }]
  ])
  const { success, output } = (await scene.call(testServer, { body: { name: 'db' } })).data
  assert.deepEqual([success, output.includes('args expected array')], [false, true])
  const [db] = (await scene.call(inspectServers, { body: {} })).data
  assert.deepEqual([db?.authStatus, db?.error, db?.config], ['unavailable', 'args expected array', {}])
  const replaced = await scene.call(updateManaged, { params: { name: 'db' }, body: { transport: 'stdio', command: 'node' } })
  assert.deepEqual(shown(replaced.data)[0], ['db', { transport: 'stdio', command: 'node' }])
  assert.equal((await scene.call(deleteManaged, { params: { name: 'web' } })).data.length, 2)
})

test('layers of a trusted project join in, read-only and without secrets, and so do plugins', async t => {
  const scene = await start(t, { one: { command: 'user' } })
  await writeJson(join(scene.cwd, '.mcp.json'), {
    mcpServers: {
      one: { command: 'root', env: { B: 'hidden', A: 'hidden' } },
      two: { url: 'https://u:p@two.example/mcp?key=hidden', headers: { Z: 'hidden' } }
    }
  })
  const query = { cwd: scene.cwd }
  assert.equal((await scene.call(listManaged, { query })).data.length, 1, 'nothing of a project without trust')
  await trust(scene)
  const plugin = await freshDir()
  await writeJson(join(plugin, 'svc.plugin.json'), { name: 'kit', mcpServers: { db: { command: 'node', env: { K: 'hidden' } } } })
  await scene.call(installPlugin, { body: { source: plugin } })
  const { data } = await scene.call(listManaged, { query })
  assert.deepEqual(
    data.map(({ name, source, mutable, config, plugin: from }) => [name, source, mutable, Object.keys(config).sort(), from]),
    [
      ['one', 'global', false, ['command', 'envKeys', 'transport'], undefined],
      ['two', 'global', false, ['headerKeys', 'transport', 'url'], undefined],
      ['plugin-kit:db', 'plugin', false, ['command', 'envKeys', 'transport'], { id: 'kit', name: 'db' }]
    ]
  )
  assert.match(JSON.stringify(data[0]), /"envKeys":\["A","B"\]/)
  assert.ok(!JSON.stringify(data).includes('hidden'))
  const body = { transport: 'stdio', command: 'x' } as const
  for (const name of ['one', 'two', 'plugin-kit:db']) {
    const refused = [
      await scene.call(updateManaged, { params: { name }, query, body }),
      await scene.call(deleteManaged, { params: { name }, query })
    ]
    for (const { code, details } of refused) assert.deepEqual([code, details?.[0]?.path], [40001, 'params.name'], name)
  }
  const { code, details } = await scene.call(addManaged, { query, body: { name: 'two', ...body } })
  assert.deepEqual([code, details?.[0]?.path], [40001, 'body.name'])
  const shadowed = await scene.call(addManaged, { query, body: { name: 'plugin-kit:db', ...body } })
  assert.deepEqual(
    shadowed.data.map(({ name, source }) => `${name} ${source}`),
    ['one global', 'plugin-kit:db global', 'two global', 'plugin-kit:db plugin']
  )
  await writeJson(join(scene.home, 'plugins', 'managed', 'kit', 'svc.plugin.json'), { name: 'kit', mcpServers: { db: { command: 5 } } })
  await writeJson(join(plugin, 'svc.plugin.json'), { name: 'more', mcpServers: { db: { command: 'node' } } })
  await scene.call(installPlugin, { body: { source: plugin } })
  const inspected = await scene.call(inspectServers, { body: {} })
  assert.deepEqual(
    inspected.data.map(({ serverId, origin }) => [serverId, origin]),
    [
      ['global:one', 'global'],
      ['global:plugin-kit%3Adb', 'global'],
      ['plugin:kit:db', 'plugin'],
      ['plugin:more:db', 'plugin']
    ]
  )
})

test('a test connects really, lists the tools in words, and keeps nothing', async t => {
  const scene = await start(t, { db: stdio(), off: stdio('good', undefined, { enabled: false }) })
  const test = (body: object) => scene.rest.json('POST', '/api/v2/mcp/servers:test', body)
  const { data } = await test({ name: 'db' })
  assert.deepEqual(data, {
    success: true,
    output: `Connected to MCP server "db".
Available tools: 9
- echo: Says it again
- env: Variables
- fail: Fails
- hang: Never answers
- die: Ends the server
- large: A long text
- picture: An image
- grow: Brings another tool
- ask: Asks the user`
  })
  const broken = await test({ server: { name: 'x', transport: 'stdio', ...stdio('dies') } })
  assert.deepEqual([broken.code, (broken.data as { success: boolean }).success], [0, false])
  assert.match((broken.data as { output: string }).output, /no database/)
  assert.equal((await test({})).code, 40001)
  assert.equal((await test({ name: 'db', server: { name: 'x', transport: 'stdio', command: 'x' } })).code, 40001)
  assert.equal((await test({ server: { name: 'x', transport: 'http' } })).code, 40001)
  assert.equal((await test({ name: 'none' })).code, 40408)
  assert.equal(((await test({ name: 'off' })).data as { success: boolean }).success, true)
})

test('a test names the tools that are left out, and why', async () => {
  const tools = [{ name: 'fine', description: 'works', schema: { type: 'object' } }]
  const listed = { tools, omitted: 2, reasons: ['bare: it has no schema of its arguments', 'a tool: it has no name'] }
  const entry = { name: 'db', config: { transport: 'stdio', command: 'x' }, source: 'global', origin: '', mutable: false } as const
  const mcp = { probe: async () => listed } as Partial<Mcp> as Mcp
  const { output } = await tryServer(entry, undefined, new AbortController().signal, mcp)
  const lines = ['Available tools: 1', '- fine: works', 'Left out: 2', ...listed.reasons.map(reason => `- ${reason}`)]
  assert.equal(output, ['Connected to MCP server "db".', ...lines].join('\n'))
})

test('who wants a login follows from the configuration, and where that does not say, from a connection', async t => {
  const open = await web(t)
  const closed = await web(t, () => false)
  const scene = await start(t, {
    local: stdio(),
    off: { url: closed.url, enabled: false },
    bearer: { url: closed.url, bearerTokenEnvVar: 'NONE' },
    own: { url: closed.url, headers: { k: 'v' } },
    pinned: { url: `${closed.url}/mcp`, auth: 'oauth', headers: { k: 'v' } },
    free: { url: `${open.url}/mcp` },
    wants: { url: `${closed.url}/mcp` },
    gone: { url: 'http://127.0.0.1:1/mcp' }
  })
  const read = async (query: { verify?: 'true' | 'false' }) =>
    Object.fromEntries((await scene.call(readAuthStatuses, { query })).data.map(({ name, authStatus }) => [name, authStatus]))
  const fixed = { local: 'not-applicable', off: 'not-applicable', bearer: 'bearer-token', own: 'not-applicable', pinned: 'oauth-required' }
  assert.deepEqual(await read({ verify: 'false' }), { ...fixed, free: 'not-applicable', wants: 'not-applicable', gone: 'not-applicable' })
  const asked = { ...fixed, free: 'not-applicable', wants: 'oauth-required', gone: 'unavailable' }
  assert.deepEqual(await read({}), asked)
  assert.deepEqual(await read({ verify: 'true' }), asked)
  for (const other of ['perhaps', '1', '0', 'TRUE']) {
    assert.equal((await scene.rest.json('GET', `/api/v2/mcp/auth-statuses?verify=${other}`)).code, 40001, other)
  }
  const { data } = await scene.call(inspectServers, { body: { targets: [{ source: 'global', name: 'gone' }] } })
  const { checkedAt, error, ...rest } = data[0] ?? {}
  assert.ok(checkedAt && error)
  assert.deepEqual(rest, {
    serverId: 'global:gone',
    locator: { source: 'global', name: 'gone' },
    runtimeName: 'gone',
    canonicalUrl: 'http://127.0.0.1:1/mcp',
    origin: 'global',
    config: { url: 'http://127.0.0.1:1/mcp', transport: 'http' },
    enabled: true,
    editable: true,
    authStatus: 'unavailable'
  })
  assert.equal((await scene.call(inspectServers, { body: { targets: [{ source: 'global', name: 'none' }] } })).code, 40408)
  const halfNamed = await scene.rest.json('POST', '/api/v2/mcp/servers:inspect', { targets: [{ source: 'plugin', pluginId: 'x' }] })
  assert.equal(halfNamed.details?.[0]?.path, 'body.targets.0.serverName')
})

test('a server that is named more than once is asked once, and told of as often as it is named', async () => {
  const entry = (name: string): Entry => ({
    name,
    config: { transport: 'http', url: `http://${name}/` },
    source: 'global',
    origin: '',
    mutable: true
  })
  const [one, two] = [entry('one'), entry('two')]
  const asked: string[] = []
  const probe: Mcp['probe'] = async ({ name }) => {
    asked.push(name)
    throw new Error(`${name} is away`)
  }
  const ports = { mcp: { probe } as Mcp, book: { read: async () => undefined } as never, now: () => new Date() }
  const question = { all: [one, two], cwd: undefined, verify: true, signal: new AbortController().signal }
  const found = await statuses([one, two, one, one], question, ports)
  assert.deepEqual(
    found.map(({ error }) => error),
    ['one is away', 'two is away', 'one is away', 'one is away']
  )
  assert.deepEqual(asked.sort(), ['one', 'two'])
})
