import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { access, chmod, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { disablePlugin, enablePlugin, removePlugin } from '../../../features/plugins/index.ts'
import { unzip } from '../../../features/plugins/unpack.ts'
import { temporaryName } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'
import { archive, directory, host, manifest, start } from './scene.ts'

test('a plugin of a directory is copied into the home, listed, switched off and on, and removed', async t => {
  const scene = await start(t)
  assert.deepEqual(await scene.list(), [])
  const source = await directory({
    ...manifest('Notes', { interface: { displayName: 'Release notes' }, skills: './skills' }),
    'skills/a.md': 'A',
    '.git/x': ''
  })
  const { code, data } = await scene.install(` ${source} `)
  assert.equal(code, 0)
  assert.deepEqual(data, {
    id: 'notes',
    displayName: 'Release notes',
    version: '1.0.0',
    enabled: true,
    state: 'ok',
    skillCount: 1,
    mcpServerCount: 0,
    enabledMcpServerCount: 0,
    hookCount: 0,
    commandCount: 0,
    hasErrors: false,
    source: 'local-path',
    originalSource: source
  })
  assert.deepEqual(await scene.list(), [data])
  const root = join(scene.home, 'plugins', 'managed', 'notes')
  assert.deepEqual((await readdir(root)).sort(), ['skills', 'svc.plugin.json'])
  const [record] = JSON.parse(await readFile(join(scene.home, 'plugins', 'installed.json'), 'utf8')).plugins
  assert.match(record.integrity, /^sha256-/)
  assert.deepEqual([record.root, record.enabled], [root, true])

  const params = { plugin_id: 'notes' }
  assert.deepEqual((await scene.call(disablePlugin, { params })).data, { ok: true })
  assert.equal((await scene.call(disablePlugin, { params })).code, 0)
  assert.equal((await scene.list())[0]?.enabled, false)
  await writeFile(join(source, 'svc.plugin.json'), JSON.stringify({ name: 'notes', version: '1.1.0' }))
  const again = await scene.install(source)
  assert.deepEqual([again.data.version, again.data.enabled, again.data.skillCount], ['1.1.0', false, 0], 'a new version keeps the switch')
  const [renewed] = JSON.parse(await readFile(join(scene.home, 'plugins', 'installed.json'), 'utf8')).plugins
  assert.equal(renewed.installedAt, record.installedAt)
  assert.equal((await scene.call(enablePlugin, { params })).code, 0)
  assert.deepEqual((await scene.call(removePlugin, { params })).data, { ok: true })
  assert.deepEqual(await scene.list(), [])
  await assert.rejects(access(root))
  for (const route of [enablePlugin, disablePlugin, removePlugin]) assert.equal((await scene.call(route, { params })).code, 40419)
})

test('clients are told of every change of the list, and of none that was refused', async t => {
  const scene = await start(t)
  const told = () => scene.events.filter(({ type }) => type === 'event.plugin.changed').length
  const source = await directory(manifest('notes'))
  const params = { plugin_id: 'notes' }

  assert.equal((await scene.call(enablePlugin, { params })).code, 40419)
  assert.notEqual((await scene.install(join(source, 'nothing'))).code, 0)
  await scene.list()
  assert.equal(told(), 0)

  const counts = []
  for (const change of [() => scene.install(source), () => scene.install(source)]) {
    await change()
    counts.push(told())
  }
  for (const route of [disablePlugin, enablePlugin, removePlugin]) {
    await scene.call(route, { params })
    counts.push(told())
  }

  assert.deepEqual(counts, [1, 2, 3, 4, 5])
})

test('files that begin with a byte order mark are read as any others', async t => {
  const scene = await start(t)
  const hooks = '\ufeff[{ "event": "Stop", "command": "true" }]'
  const files = manifest('marked', { hooks: './hooks.json' })
  const { data } = await scene.install(
    await directory({ ...files, 'svc.plugin.json': `\ufeff${files['svc.plugin.json']}`, 'hooks.json': hooks })
  )
  assert.deepEqual([data.state, data.hookCount], ['ok', 1])
})

test('what a manifest says for marketplaces alone keeps nobody from the plugin, whatever its shape', async t => {
  const scene = await start(t)
  const facts = { description: ['a'], keywords: 'a, b', homepage: null, license: { type: 'MIT' }, author: { email: 'a@b.c' } }
  const { code, data } = await scene.install(await directory(manifest('notes', facts)))
  assert.deepEqual([code, data?.state], [0, 'ok'])
})

test('an unknown action and a bare id are refused', async t => {
  const { rest } = await start(t)
  for (const path of ['/api/v1/plugins/notes:purge', '/api/v1/plugins/notes']) {
    assert.equal((await rest.json('POST', path, {})).code, 40001)
  }
})

test('a plugin that is not installed leaves no list behind', async t => {
  const scene = await start(t)
  for (const route of [enablePlugin, disablePlugin, removePlugin]) {
    assert.equal((await scene.call(route, { params: { plugin_id: 'nobody' } })).code, 40419)
  }
  await assert.rejects(access(join(scene.home, 'plugins', 'installed.json')))
})

test('a source that is no plugin is refused with the reason, and leaves nothing', async t => {
  const scene = await start(t)
  const link = await directory(manifest('linked'))
  await symlink('/etc/passwd', join(link, 'passwd'))
  const inside = await directory({ ...manifest('escaping', { skills: './out' }) })
  await symlink('/etc', join(inside, 'out'))
  const file = join(await directory({ 'a.txt': '' }), 'a.txt')
  const cases: readonly (readonly [string, number, RegExp])[] = [
    ['relative/path', 40001, /absolute path/],
    ['/no/such/place', 40409, /not found/],
    [file, 40001, /no directory: an archive is taken from its http\(s\) address, or unpacked/],
    [await directory({}), 40001, /svc\.plugin\.json/],
    [await directory({ 'svc.plugin.json': '{' }), 40001, /svc\.plugin\.json is no JSON/],
    [await directory({ ...manifest('a', { hooks: './hooks.json' }), 'hooks.json': 'no' }), 40001, /hooks\.json is no JSON/],
    [await directory(manifest('Bad Name!')), 40001, /plugin id/],
    [await directory(manifest('a', { skills: 5, hooks: {} })), 40001, /skills expected string or array; hooks expected string or array/],
    [await directory({ 'svc.plugin.json': '{"version":"1"}' }), 40001, /name/],
    [await directory(manifest('a', { skills: '../x' })), 40001, /begin with/],
    [await directory(manifest('a', { skills: './none' })), 40001, /not there/],
    [await directory(manifest('a', { hooks: [{ event: 'Never', command: 'x' }] })), 40001, /hooks/],
    [await directory(manifest('a', { mcpServers: { s: { command: 'bin/sh' } } })), 40001, /mcpServers/],
    [await directory(manifest('a', { systemPrompt: 'x'.repeat(33 * 1024) })), 40001, /systemPrompt/],
    [link, 40001, /leads out/],
    [inside, 40001, /leads out/],
    ['http://user:pass@127.0.0.1/a.zip', 40001, /password/]
  ]
  for (const [source, code, reason] of cases) {
    const answer = await scene.install(source)
    assert.equal(answer.code, code, source)
    assert.match(`${answer.msg} ${JSON.stringify(answer.details)}`, reason)
  }
  assert.deepEqual(await scene.list(), [])
  assert.deepEqual(await readdir(join(scene.home, 'plugins', 'staging')), [])
  await assert.rejects(access(join(scene.home, 'plugins', 'managed')))
})

test('an archive from an address is unpacked, and one directory at its top stands for all', async t => {
  const scene = await start(t)
  const web = await host(t)
  web.serve['/a.zip'] = { location: '/real.zip' }
  web.serve['/real.zip'] = await archive({
    'top/svc.plugin.json': JSON.stringify({ name: 'zipped' }),
    'top/SKILL.md': '---\nname: z\ndescription: Z\n---\nZ'
  })
  const { data } = await scene.install(`${web.url}/a.zip`)
  assert.deepEqual([data.id, data.source, data.skillCount], ['zipped', 'zip-url', 1])
  const files = { 'mac/svc.plugin.json': JSON.stringify({ name: 'mac' }), '__MACOSX/mac/._svc.plugin.json': 'x', '.DS_Store': 'x' }
  web.serve['/mac.zip'] = await archive(files)
  assert.equal((await scene.install(`${web.url}/mac.zip`)).data.id, 'mac', 'what the archiver of macOS adds does not count')
  web.serve['/beside.zip'] = await archive({ 'top/svc.plugin.json': JSON.stringify({ name: 'beside' }), 'README.md': 'x' })
  assert.equal((await scene.install(`${web.url}/beside.zip`)).data.id, 'beside', 'nor does a file beside the directory')
})

test('an archive whose paths have backslashes, as old archivers of Windows write them, is one with slashes', async t => {
  const scene = await start(t)
  const web = await host(t)
  const windows = async (files: Record<string, string>) => {
    const made = (await archive(files)).toString('latin1')
    return Buffer.from(
      Object.keys(files).reduce((bytes, path) => bytes.replaceAll(path, path.replaceAll('|', '\\')), made),
      'latin1'
    )
  }
  const manifest = JSON.stringify({ name: 'win', skills: './skills' })
  web.serve['/a.zip'] = await windows({ 'top|svc.plugin.json': manifest, 'top|skills|a.md': 'A' })
  const { data } = await scene.install(`${web.url}/a.zip`)
  assert.deepEqual([data.id, data.skillCount], ['win', 1])
  web.serve['/b.zip'] = await windows({ 'svc.plugin.json': manifest, '..|evil': 'x' })
  assert.equal((await scene.install(`${web.url}/b.zip`)).code, 40001)
})

test('a repository is taken at its pinned ref, at its newest release, or at its head', async t => {
  const web = await host(t)
  const scene = await start(t, undefined, { config: { plugins: { repo_hosts: [web.url] } } })
  const sha = 'a'.repeat(40)
  const zip = await archive({ 'r-1/svc.plugin.json': JSON.stringify({ name: 'r', version: '1.0.0' }) }, sha)
  const archives = ['refs/heads/dev/x', 'refs/tags/v2', 'refs/tags/v3', 'abcdef1', 'HEAD']
  for (const path of archives) web.serve[`/o/r/archive/${path}.zip`] = zip
  web.serve['/o/r/releases/latest'] = { location: '/o/r/releases/tag/v3' }
  const refOf = async (path: string) => (await scene.install(`${web.url}/o/r${path}`)).data.repo
  const repo = (kind: string, value: string) => ({ owner: 'o', repo: 'r', ref: { kind, value }, installedSha: sha })
  assert.deepEqual(await refOf('.git'), repo('tag', 'v3'))
  assert.deepEqual(await refOf('/tree/dev/x'), repo('branch', 'dev/x'))
  assert.deepEqual(await refOf('/tree/abcdef1'), repo('sha', 'abcdef1'))
  assert.deepEqual(await refOf('/commit/abcdef1'), repo('sha', 'abcdef1'))
  assert.deepEqual(await refOf('/releases/tag/v2'), repo('tag', 'v2'))
  web.serve['/o/r/releases/latest'] = { location: '/o/r/releases/tag/100%' }
  web.serve['/o/r/archive/refs/tags/100%25.zip'] = zip
  assert.deepEqual(await refOf(''), repo('tag', '100%'))
  web.serve['/o/r/releases/latest'] = { location: '/o/r/releases' }
  assert.deepEqual(await refOf(''), repo('branch', 'HEAD'))
  const missing = await scene.install(`${web.url}/o/none/tree/main`)
  assert.deepEqual([missing.code, /HTTP 404/.test(JSON.stringify(missing.details))], [40001, true])
})

test('an archive that holds a name twice is refused with that name, not with where it was being unpacked', async t => {
  const [web, scene] = [await host(t), await start(t)]
  web.serve['/a.zip'] = await archive({ ...manifest('twice'), a1: 'x' }, '', zip => zip.addBuffer(Buffer.from('y'), 'a1'))
  const { code, msg } = await scene.install(`${web.url}/a.zip`)
  assert.deepEqual([code, msg.includes('the archive holds a1 twice'), msg.includes(scene.home)], [40001, true, false], msg)
})

test('hostile archives are refused and write nothing outside', async t => {
  const scene = await start(t)
  const web = await host(t)
  const good = manifest('bad')
  const patched = async (from: string, to: string) => {
    const zip = await archive({ ...good, [from]: 'x' })
    let at = zip.indexOf(from)
    for (; at >= 0; at = zip.indexOf(from, at + 1)) zip.write(to, at)
    return zip
  }
  web.serve['/up.zip'] = await patched('aaaaaaaa.txt', '../../up.txt')
  web.serve['/abs.zip'] = await patched('aaaaaaaa.txt', '/tmp/bad.txt')
  web.serve['/back.zip'] = await patched('aaaaaaaa.txt', '..\\..\\x.txt')
  web.serve['/link.zip'] = await archive(good, '', zip => zip.addBuffer(Buffer.from('/etc/passwd'), 'link', { mode: 0o120777 }))
  web.serve['/device.zip'] = await archive(good, '', zip => zip.addBuffer(Buffer.from('x'), 'device', { mode: 0o020666 }))
  web.serve['/cut.zip'] = (await archive({ ...good, big: 'x'.repeat(5000) })).subarray(0, 200)
  web.serve['/none.zip'] = 'not an archive'
  web.serve['/twice.zip'] = await archive(good, '', zip => zip.addBuffer(Buffer.from('{}'), 'svc.plugin.json'))
  web.serve['/round.zip'] = { location: '/round.zip' }
  web.serve['/file.zip'] = { location: 'file:///etc/passwd' }
  for (const name of Object.keys(web.serve)) assert.equal((await scene.install(web.url + name)).code, 40001, name)
  assert.deepEqual(await scene.list(), [])
  assert.deepEqual(await readdir(join(scene.home, 'plugins')), ['staging'])
  assert.deepEqual(await readdir(join(scene.home, 'plugins', 'staging')), [])
})

test('an archive with too many entries, or too much in them, ends at the limit', async () => {
  const into = await freshDir()
  const file = join(into, 'a.zip')
  await writeFile(file, await archive({ a: 'x', b: 'y', c: 'z'.repeat(1_000_000) }))
  const unpack = (name: string, limits: { entries: number; bytes: number }) =>
    unzip(file, join(into, name), new AbortController().signal, limits)
  for (const name of ['one', 'two', 'three']) await mkdir(join(into, name))
  await assert.rejects(unpack('one', { entries: 2, bytes: 10_000_000 }), /more than 2/)
  await assert.rejects(unpack('two', { entries: 9, bytes: 999_999 }), /more than 999999 bytes/)
  await unpack('three', { entries: 3, bytes: 1_000_002 })
  assert.deepEqual(await readdir(join(into, 'three')), ['a', 'b', 'c'])
})

test('a download ends with its limit, and when nothing comes any more', async t => {
  const web = await host(t)
  web.serve['/slow.zip'] = (_request, reply) => void reply.writeHead(200).write('PK')
  for (const [limits, why] of [
    [{ download_ms: 50 }, /too long/],
    [{ silence_ms: 50 }, /stopped coming/]
  ] as const) {
    const scene = await start(t, undefined, { config: { plugins: limits } })
    const answer = await scene.install(`${web.url}/slow.zip`)
    assert.equal(answer.code, 40001)
    assert.match(JSON.stringify(answer.details), why)
  }
})

test('the copy that was there before comes back when the new one cannot be put on record', async t => {
  const scene = await start(t)
  const source = await directory({ ...manifest('kept'), 'first.txt': '1' })
  assert.equal((await scene.install(source)).code, 0)
  const list = join(scene.home, 'plugins', 'installed.json')
  const before = await readFile(list)
  await rename(list, `${list}.away`)
  await mkdir(list)
  await writeFile(join(source, 'second.txt'), '2')
  assert.equal((await scene.install(source)).code, 50003)
  assert.deepEqual((await readdir(join(scene.home, 'plugins', 'managed', 'kept'))).sort(), ['first.txt', 'svc.plugin.json'])
  assert.deepEqual(await readFile(`${list}.away`), before)
})

test('a copy that cannot be removed is no reason to give the new one up, and goes when it can', {
  skip: process.getuid?.() === 0 && 'nothing is forbidden to this user'
}, async t => {
  const scene = await start(t)
  const source = await directory({ ...manifest('kit'), 'made/file': '1' })
  await scene.install(source)
  const managed = join(scene.home, 'plugins', 'managed')
  await chmod(join(managed, 'kit', 'made'), 0o500)
  await writeFile(join(source, 'second.txt'), '2')
  assert.equal((await scene.install(source)).code, 0)
  const left = (await readdir(managed)).find(name => name.startsWith('.old-kit-')) ?? ''
  assert.deepEqual(await readdir(join(managed, left, 'made')), ['file'])
  assert.equal((await scene.install(source)).code, 0)
  assert.equal(await readFile(join(managed, 'kit', 'second.txt'), 'utf8'), '2')
  for (const name of await readdir(managed)) if (name !== 'kit') await chmod(join(managed, name, 'made'), 0o700)
  assert.equal((await scene.install(source)).code, 0)
  assert.deepEqual(await readdir(managed), ['kit'])
})

test('the previous copy of a plugin whose change died half-way comes back with the next change', async t => {
  const scene = await start(t)
  await scene.install(await directory(manifest('one')))
  const managed = join(scene.home, 'plugins', 'managed')
  await rename(join(managed, 'one'), join(managed, '.old-one-01ABC'))
  await scene.install(await directory(manifest('two')))
  assert.deepEqual((await readdir(managed)).sort(), ['one', 'two'])
})

test('a list that is damaged stays as it is: whoever manages plugins is told so, and sessions go on without any', async t => {
  const scene = await start(t)
  await scene.install(await directory(manifest('one')))
  const list = join(scene.home, 'plugins', 'installed.json')
  const before = await readFile(list, 'utf8')
  const params = { plugin_id: 'one' }
  const other = await directory(manifest('two'))
  const manage = [
    () => scene.rest.json('GET', '/api/v1/plugins'),
    () => scene.install(other),
    () => scene.call(enablePlugin, { params }),
    () => scene.call(disablePlugin, { params }),
    () => scene.call(removePlugin, { params })
  ]
  for (const damaged of ['{oops', '{"version":1,"plugins":[{}]}']) {
    await writeFile(list, damaged)
    for (const work of manage) {
      const { code, msg } = await work()
      assert.deepEqual([code, msg.includes('plugins/installed.json: ')], [50003, true])
    }
    assert.equal(await readFile(list, 'utf8'), damaged)
  }
  const { prompt_id } = await scene.prompt('go')
  await scene.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === prompt_id)
  const again = await start(t, undefined, { home: scene.home, session_id: scene.session_id })
  assert.equal((await again.rest.json('GET', '/api/v1/plugins')).code, 50003, 'a server starts with it')
  assert.deepEqual(await readdir(join(scene.home, 'plugins', 'managed')), ['one'])
  await writeFile(list, before)
  assert.deepEqual(
    (await scene.list()).map(({ id }) => id),
    ['one']
  )
})

test('what a process staged that died goes when a server starts, and what another one stages stays', async t => {
  const scene = await start(t)
  const staging = join(scene.home, 'plugins', 'staging')
  const living = await temporaryName()
  const { pid } = spawnSync(process.execPath, ['--version'])
  const dead = living.replace(/^\d+/, `${pid}`)
  for (const name of [living, dead]) {
    await mkdir(join(staging, name, 'files'), { recursive: true })
    await writeFile(join(staging, name, 'files', 'a'), '')
  }
  const next = await start(t, undefined, { home: scene.home, session_id: scene.session_id })
  await next.stop()
  assert.deepEqual(await readdir(staging), [living])
})

test('a plugin whose files are damaged later is listed as an error and brings nothing', async t => {
  const scene = await start(t)
  await scene.install(await directory(manifest('one')))
  const other = await start(t, undefined, { home: scene.home, session_id: scene.session_id })
  await writeFile(join(scene.home, 'plugins', 'managed', 'one', 'svc.plugin.json'), '{')
  assert.equal((await other.list())[0]?.state, 'ok', 'files are read again when the list changes')
  await scene.install(await directory(manifest('two')))
  const [one, two] = await other.list()
  assert.deepEqual([one?.id, one?.state, one?.hasErrors, two?.state], ['one', 'error', true, 'ok'])
  assert.deepEqual(one?.diagnostics, [{ severity: 'error', message: 'svc.plugin.json is no JSON' }])
})
