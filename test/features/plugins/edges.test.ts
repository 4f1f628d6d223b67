/** Edges of plugins: limits of what they bring, where their paths may lead, redirects, and changes that come together. */
import assert from 'node:assert/strict'
import { cp, readdir, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { archive, directory, host, manifest, start } from './scene.ts'

test('a section of the system prompt has at most 32 KiB, whatever its characters take', async t => {
  const scene = await start(t)
  const ofBytes = (bytes: number) => directory(manifest('notes', { systemPrompt: `${'é'.repeat(16_383)}${'x'.repeat(bytes - 32_766)}` }))
  assert.equal((await scene.install(await ofBytes(32_768))).code, 0)
  assert.equal((await scene.install(await ofBytes(32_769))).code, 40001)
})

test('a server of a plugin runs in a directory of the plugin', async t => {
  const scene = await start(t)
  const withCwd = async (cwd: unknown) => {
    const source = await directory({ ...manifest('notes', { mcpServers: { one: { command: 'node', cwd } } }), 'sub/a': '' })
    return (await scene.install(source)).code
  }
  assert.deepEqual(
    [await withCwd('./sub'), await withCwd('./none'), await withCwd('/tmp'), await withCwd('./..')],
    [0, 40001, 40001, 40001]
  )
})

test('a plugin whose files came to lead out of it brings nothing, from the next change of the list on', async t => {
  const scene = await start(t)
  for (const name of ['one', 'two']) {
    const source = await directory({ ...manifest(name, { skills: './skills' }), 'skills/a.md': 'A' })
    assert.equal((await scene.install(source)).code, 0)
  }
  for (const [id, file] of Object.entries({ one: 'svc.plugin.json', two: 'skills' })) {
    const place = join(scene.home, 'plugins', 'managed', id, file)
    await rename(place, join(scene.home, `elsewhere-${id}`))
    await symlink(join(scene.home, `elsewhere-${id}`), place)
  }
  assert.equal((await scene.install(await directory(manifest('three')))).code, 0)
  assert.deepEqual(
    (await scene.list()).map(({ id, state, skillCount }) => [id, state, skillCount]),
    [
      ['one', 'error', 0],
      ['three', 'ok', 0],
      ['two', 'error', 0]
    ]
  )
})

test('five redirects are followed, a sixth is not', async t => {
  const scene = await start(t)
  const { url, serve } = await host(t)
  serve['/0.zip'] = await archive(manifest('notes'))
  for (let step = 1; step <= 6; step++) serve[`/${step}.zip`] = { location: `/${step - 1}.zip` }
  assert.equal((await scene.install(`${url}/5.zip`)).code, 0)
  const refused = await scene.install(`${url}/6.zip`)
  assert.equal(refused.code, 40001)
  assert.match(JSON.stringify(refused.details), /redirects too often/)
})

test('a new copy leaves nothing of the one before, also where a dead process did', async t => {
  const scene = await start(t)
  const source = await directory(manifest('notes'))
  const managed = join(scene.home, 'plugins', 'managed')
  for (let n = 0; n < 2; n++) assert.equal((await scene.install(source)).code, 0)
  assert.deepEqual(await readdir(managed), ['notes'])
  await cp(join(managed, 'notes'), join(managed, '.old-notes-dead'), { recursive: true })
  assert.equal((await scene.install(source)).code, 0)
  assert.deepEqual(await readdir(managed), ['notes'])
})

test('installs of one plugin that come together all come through, and one copy is there whole', async t => {
  const scene = await start(t)
  const sources = await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      directory({ ...manifest('notes', { version: `1.0.${n}`, skills: './skills' }), 'skills/a.md': `A ${n}` })
    )
  )
  const codes = (await Promise.all(sources.map(source => scene.install(source)))).map(({ code }) => code)
  assert.deepEqual(new Set(codes), new Set([0]))
  assert.deepEqual(
    (await scene.list()).map(({ id, state, skillCount }) => [id, state, skillCount]),
    [['notes', 'ok', 1]]
  )
  assert.deepEqual(await readdir(join(scene.home, 'plugins', 'managed')), ['notes'])
  assert.deepEqual(await readdir(join(scene.home, 'plugins', 'staging')), [])
})
