/** Several processes and sudden death: nothing acknowledged is lost, the file is always whole. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigFile } from '../../../features/config/file.ts'
import { configChanged, patchConfig, readConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { readToml } from '../../../features/config/toml.ts'
import type { AppError } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { program } from '../../helpers/child.ts'
import { freshDir } from '../../helpers/temp.ts'

async function freshHome(): Promise<string> {
  const home = await freshDir()
  return home
}

function patcher(t: TestContext, home: string, key: string, rounds: number): ChildProcess {
  const child = fork(program('config-patches'), [home, key, String(rounds)])
  t.after(() => child.kill('SIGKILL'))
  return child
}

const counters = async (home: string) => readToml(await readFile(join(home, 'config.toml'), 'utf8')).counters as Record<string, number>

test('a killed writer leaves a whole file with everything it acknowledged', async t => {
  const home = await freshHome()
  await writeFile(join(home, 'config.toml'), '# kept\n\n[packs]\nload = [] # mine\n')
  for (const last of [1, 4, 9]) {
    const child = patcher(t, home, `until_${last}`, 1_000)
    const done = once(child, 'exit')
    child.on('message', round => {
      if (round === last) child.kill('SIGKILL')
    })
    await done
    assert.ok((await counters(home))[`until_${last}`]! >= last)
    const lines = (await readFile(join(home, 'config.toml'), 'utf8')).split('\n')
    assert.ok(lines[0] === '# kept' && lines.includes('load = [] # mine'), 'comments survive')
  }
})

test('death right before any step of a save leaves the old content or the new one, and the next save goes through', async t => {
  const home = await freshHome()
  const path = join(home, 'config.toml')
  const start = '# kept\n\n[packs]\nload = [] # mine\n\n[counters]\nsaved = 0 # by whom\n'
  const files: string[] = []
  for (let step = 1, alive = false; !alive; step++) {
    await writeFile(path, start)
    const child = fork(program('config-death'), [home, String(step)])
    t.after(() => child.kill('SIGKILL'))
    let saved = false
    child.on('message', () => {
      saved = true
    })
    const [code] = await once(child, 'exit')
    alive = code === 0
    const left = await readFile(path, 'utf8')
    const done = start.replace('saved = 0', `saved = ${step}`)
    assert.ok(left === done || (left === start && !saved), `step ${step} left ${left}`)
    if (!alive) files.push(left === done ? 'new' : 'old')

    await new ConfigFile(home).change(table => ({ ...table, next: step }))
    assert.equal(await readFile(path, 'utf8'), left.replace('# kept\n', `# kept\n\nnext = ${step}\n`))
  }
  assert.ok(files.includes('old') && files.includes('new'), files.join())
  // An empty lock file may be one that a living process is about to fill, so nobody clears it away.
  const left = (await readdir(home)).filter(name => !name.startsWith('config.toml.lock~') || statSync(join(home, name)).size > 0)
  assert.deepEqual(left, ['config.toml'], 'nothing else is left over')
})

test('two processes that patch at once lose neither patch', async t => {
  const home = await freshHome()
  const children = ['one', 'two'].map(key => patcher(t, home, key, 15))

  await Promise.all(children.map(child => once(child, 'exit')))

  assert.deepEqual(await counters(home), { one: 15, two: 15 })
})

test('two processes whose homes link one file lose neither patch', async t => {
  const [shared, ...homes] = [await freshHome(), await freshHome(), await freshHome()]
  for (const home of homes) await symlink(join(shared, 'config.toml'), join(home, 'config.toml'))
  const children = homes.map((home, at) => patcher(t, home, ['one', 'two'][at]!, 15))

  await Promise.all(children.map(child => once(child, 'exit')))

  assert.deepEqual(await counters(shared), { one: 15, two: 15 })
})

test('the file is for its owner alone and a link to it stays a link', async () => {
  const home = await freshHome()
  const real = join(home, 'dotfiles.toml')
  await writeFile(real, 'a = 1 # one\n')
  await chmod(real, 0o644)
  await symlink(real, join(home, 'config.toml'))

  await new ConfigFile(home).change(table => ({ ...table, b: 2 }))

  assert.equal(await readFile(real, 'utf8'), 'a = 1 # one\nb = 2\n')
  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), 'a = 1 # one\nb = 2\n')
  assert.equal((await stat(real)).mode & 0o777, 0o600)
})

test('a link to a file that is not there yet stays a link, and the file is made; one into a directory that is not there is told', async () => {
  const home = await freshHome()
  const path = join(home, 'config.toml')
  const dotfiles = await freshDir()
  await symlink(join(dotfiles, 'here'), join(home, 'there'))
  await symlink('there/one.toml', path)
  const file = new ConfigFile(home)
  const change = () => file.change(table => ({ ...table, b: 2 }))

  await assert.rejects(change, /could not be saved: ENOENT/)
  await mkdir(join(dotfiles, 'here'))
  await symlink('two.toml', join(dotfiles, 'here', 'one.toml'))
  await change()

  assert.equal(await readFile(join(dotfiles, 'here', 'two.toml'), 'utf8'), 'b = 2\n')
  assert.deepEqual([await readlink(path), await readlink(join(dotfiles, 'here', 'one.toml'))], ['there/one.toml', 'two.toml'])
})

test('a file that was made read-only stays as it is, also behind a link; what changes nothing passes', async () => {
  const home = await freshHome()
  const path = join(home, 'config.toml')
  const real = join(home, 'dotfiles.toml')
  await writeFile(real, 'a = 1 # one\n')
  await chmod(real, 0o444)
  await symlink(real, path)
  const file = new ConfigFile(home)

  const refused = { spec: { code: 40001 }, message: 'config.toml could not be saved: the file is read-only' }
  await assert.rejects(
    file.change(table => ({ ...table, b: 2 })),
    ({ spec, message }: AppError) => {
      assert.deepEqual({ spec: { code: spec.code }, message }, refused)
      return true
    }
  )
  assert.deepEqual((await file.change(() => undefined)).table, { a: 1 })
  assert.equal(await readFile(path, 'utf8'), 'a = 1 # one\n')
  assert.equal((await stat(real)).mode & 0o777, 0o444)

  await chmod(real, 0o644)
  await file.change(table => ({ ...table, b: 2 }))
  assert.equal(await readFile(real, 'utf8'), 'a = 1 # one\nb = 2\n')
})

test('a second server on the home sees a patch of the first at once and announces it itself', async t => {
  const one = await startTestKernel(t, { packs: [config] })
  const two = await startTestKernel(t, { packs: [config], home: one.home })

  await one.call(patchConfig, { body: { default_model: 'a' } })
  assert.equal((await two.call(readConfig)).data.default_model, 'a')
  await Promise.all(
    ['b', 'c', 'd', 'e'].map((name, n) => [one, two][n % 2]!.call(patchConfig, { body: { experimental: { [name]: true } } }))
  )

  for (const { call, waitFor } of [one, two]) {
    assert.deepEqual((await call(readConfig)).data.raw, { default_model: 'a', experimental: { b: true, c: true, d: true, e: true } })
    await waitFor(({ type }) => type === configChanged.type)
  }
})

test('an unloaded pack reads and announces nothing, and picks up the file when it comes back', async t => {
  const { call, events, home, kernel } = await startTestKernel(t, { packs: [config] })
  await kernel.unload('config')
  await writeFile(join(home, 'config.toml'), 'default_model = "later"\n')

  await kernel.load('config')

  assert.equal((await call(readConfig)).data.default_model, 'later')
  assert.deepEqual(events, [])
})
