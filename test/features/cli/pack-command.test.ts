/** A day of an author, and one of an operator: packs made, checked, tested, swapped, added and removed from the command line. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { RestClient } from '../../../kernel/testing.ts'
import { run, serve } from '../../helpers/cli.ts'
import { command } from '../../helpers/cli-io.ts'
import { freshDir } from '../../helpers/temp.ts'

const main = fileURLToPath(new URL('../../../bundle/main.js', import.meta.url))

test('a new pack is checked and tested as it comes; what is wrong with it is found', async () => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const place = join(dir, 'my-notes')
  assert.equal((await command(home, ['pack', 'new', place])).code, 0)
  assert.match((await command(home, ['pack', 'new', place])).stderr, /is there already and not empty/)
  assert.match((await command(home, ['pack', 'new', join(dir, 'My_Notes')])).stderr, /'My_Notes' is no name for a pack/)
  assert.match((await command(home, ['pack', 'new', join(dir, 'sessions')])).stderr, /'sessions' is the name of a pack of the server/)
  const { peerDependenciesMeta, devDependencies } = JSON.parse(await readFile(join(place, 'package.json'), 'utf8'))
  const own = JSON.parse(await readFile(join(place, devDependencies['svc-code'].replace(/^file:/, ''), 'package.json'), 'utf8'))
  assert.equal(own.name, 'svc-code', 'npm finds the installation that made the pack: its types, and its command')
  assert.deepEqual(peerDependenciesMeta, { 'svc-code': { optional: true } }, 'npm looks for no package that may be in no registry')
  assert.equal((await command(home, ['pack', 'check', place])).stdout, `my-notes (${place}/pack.ts): fine\n`)

  const tested = await command(home, ['pack', 'test', place])

  assert.equal(tested.code, 0, tested.stdout + tested.stderr)
  assert.equal(tested.stdout.match(/^ {2}ok {4}/gm)?.length, 7)
  assert.match(tested.stdout, /^its own tests: pack\.test\.ts\n✔ a note is kept/m)
  assert.match(tested.stdout, /\n\nall 7 checks passed; its own tests passed\n$/)

  await rm(join(place, 'pack.test.ts'))

  const source = await readFile(join(place, 'pack.ts'), 'utf8')
  await writeFile(
    join(place, 'pack.ts'),
    source
      .replace("description: 'Keeps notes and tells when one is added',", '')
      .replace(
        'const notes = ctx.store',
        'const kept = globalThis as { kept?: unknown[] }\n    ;(kept.kept ??= []).push(setInterval(() => undefined, 60_000))\n    const notes = ctx.store'
      )
      .replace('items: await notes.values()', 'items: 5 as never')
  )
  assert.match((await command(home, ['pack', 'check', place])).stdout, /^my-notes .*: 1 fault\n {2}it has no description/)
  const odd = join(dir, 'odd.mjs')
  await writeFile(
    odd,
    "import { definePack } from 'svc-code/kernel'\nexport default definePack({ name: 'odd', needs: { sessions: 'sessions' } })\n"
  )
  const checked = await command(home, ['pack', 'check', odd])
  assert.deepEqual([checked.code, checked.stdout.match(/ {2}pack odd is not what definePack takes: setup/)?.length], [1, 1])
  const bad = await run(home, 'pack', 'test', place)
  assert.equal(bad.code, 1)
  assert.match(bad.stdout, /^ {2}FAIL {2}unloading leaves no .*\n +something was left open: Timeout\n {2}/m)
  const missed = 'reply of route GET /api/v1/my-notes misses its schema: data.items: expected array'
  assert.equal(bad.stdout.split(missed).length, 2, 'what several checks find is told once')
  assert.match(bad.stdout, /^ {2}FAIL {2}it is active with nothing but .*\n +as above\n/m)
  assert.doesNotMatch(bad.stdout, /actual|\.js:\d+/)
  assert.match(bad.stdout, /\n5 of 7 checks FAILED; there are no tests beside it/)
})

test('while an author edits, the pack is swapped without a restart, and a broken edit keeps the version before', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const place = join(dir, 'words')
  await mkdir(place)
  const pack = (text: string) =>
    writeFile(
      join(place, 'pack.mjs'),
      `import { definePack, defineRoute, Type } from 'svc-code/kernel'
       const words = defineRoute({ method: 'GET', path: '/api/v1/words', summary: 'Words', auth: 'none', data: Type.String() })
       export default definePack({ name: 'words', setup: ctx => void ctx.route(words, () => '${text}') })`
    )
  await pack('one')
  const child = spawn(process.execPath, [main, 'pack', 'dev', place, '--home', home], {
    env: { ...process.env, SVC_CODE_CATALOG_URL: 'off' },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.after(() => child.kill('SIGKILL'))
  let printed = ''
  let look: () => void = () => undefined
  child.stdout.on('data', chunk => {
    printed += String(chunk)
    look()
  })
  const said = (pattern: RegExp) =>
    new Promise<void>(done => {
      look = () => {
        if (pattern.test(printed)) done()
      }
      look()
    })
  await said(/^watching /m)
  const url = /is listening on (\S+)/.exec(printed)?.[1] ?? ''
  const words = async () => ((await (await fetch(`${url}/api/v1/words`)).json()) as { data: string }).data
  assert.equal(await words(), 'one')
  await pack('two')
  await said(/^words is Active$/m)
  assert.equal(await words(), 'two')
  await writeFile(join(place, 'pack.mjs'), 'export default (')
  await said(/^still the version before: .*pack\.mjs/m)
  assert.equal(await words(), 'two')
  await writeFile(join(home, 'config.toml'), '[packs.config.cron]\npoll_ms = 2000\n', { mode: 0o600 })
  await said(/packs changed with config\.toml: .*~cron/)
  assert.equal(await words(), 'two', 'an edit of the configuration does not bring the broken one')
})

test('packs are added by path and as a tarball, and removed, while the server runs and sessions live on', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const server = await serve(t, home, '--port', '0')
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  const session = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: dir } })).data as { id: string }
  const place = join(dir, 'greeter')
  await mkdir(place)
  await writeFile(
    join(place, 'package.json'),
    '{ "name": "svc-code-greeter", "version": "1.2.3", "type": "module", "exports": "./pack.js" }'
  )
  const pack = (setup: string) =>
    writeFile(
      join(place, 'pack.js'),
      `import { definePack } from 'svc-code/kernel'\nexport default definePack({ name: 'greeter', version: '1.2.3', setup() {${setup}} })\n`
    )
  const state = async () => (await command(home, ['packs', 'greeter'])).stdout.split('\n')[0]

  await pack("throw new Error('no greeting')")
  const refused = await command(home, ['pack', 'add', place])
  assert.deepEqual([refused.code, refused.stderr], [1, `svc-code: not added: greeter: no greeting (${place}/pack.js:2)\n`])
  assert.match((await command(home, ['packs', 'greeter'])).stderr, /no pack 'greeter'/)

  await pack('arguments[0].slot({})')
  assert.match(
    (await command(home, ['pack', 'add', place])).stderr,
    /not added: greeter: ctx\.slot .* own \(\S+pack\.js:2\) \(--in-process runs it in that of the server\)/
  )

  await pack('')
  assert.equal((await command(home, ['pack', 'add', join(place, 'pack.js')])).stdout, 'added greeter, Active\n')
  assert.match((await state()) ?? '', /^greeter +Active, 1\.2\.3/)
  assert.match((await command(home, ['packs', 'greeter'])).stdout, /process \d+ of its own/)
  assert.match(await readFile(join(home, 'config.toml'), 'utf8'), /isolate = \["greeter"\]/)
  assert.match((await command(home, ['pack', 'unload', 'greeter'])).stdout, /^greeter +Unloaded/)
  assert.match((await command(home, ['pack', 'load', 'greeter'])).stdout, /^greeter +Active/)
  await writeFile(join(place, 'pack.js'), 'export default (')
  const unusable = await command(home, ['pack', 'reload', 'greeter'])
  assert.deepEqual([unusable.code, unusable.stdout], [1, ''])
  assert.match(unusable.stderr, /^svc-code: the pack goes on as it was, for its new version cannot be used: \S+pack\.js:1: /)
  assert.match((await state()) ?? '', /^greeter +Active/)
  await pack('')
  assert.match((await command(home, ['pack', 'reload', 'greeter'])).stdout, /^greeter +Active, 1\.2\.3\n$/)
  assert.match((await command(home, ['pack', 'remove', 'greeter'])).stdout, /^removed greeter; the running server/)
  assert.doesNotMatch(await readFile(join(home, 'config.toml'), 'utf8'), /isolate/)

  assert.equal(spawnSync('npm', ['pack', '--silent'], { cwd: place }).status, 0)
  const added = await command(home, ['pack', 'add', '--in-process', join(place, 'svc-code-greeter-1.2.3.tgz')])
  assert.deepEqual([added.code, added.stdout], [0, 'added greeter, Active\n'], added.stderr)
  assert.match(await readFile(join(home, 'config.toml'), 'utf8'), /load = \["svc-code-greeter"\]/)
  assert.doesNotMatch((await command(home, ['packs', 'greeter'])).stdout, /of its own/)
  assert.equal((await command(home, ['pack', 'remove', 'greeter'])).code, 0)
  await writeFile(join(home, 'config.toml'), '[packs]\nload = ["./nothing.js"]\nrequire = ["geeter"]\nisolate = ["greter"]\n')
  const { stderr } = await command(home, ['packs'])
  assert.match(stderr, /warning: \[packs\] require in config\.toml: no pack is named 'geeter'\n/)
  assert.match(stderr, /warning: \[packs\] isolate in config\.toml: no pack of load is named 'greter'\n/)
  assert.equal(((await rest.json('GET', `/api/v1/sessions/${session.id}`)).data as { id: string }).id, session.id)
})

test('who switches a pack is told which others go, come and stay away with it', async t => {
  const home = await freshDir()
  await serve(t, home, '--port', '0')

  const out = await command(home, ['pack', 'unload', 'mcp'])
  const back = await command(home, ['pack', 'load', 'mcp'])
  const anew = await command(home, ['pack', 'reload', 'mcp'])
  const alone = await command(home, ['pack', 'unload', 'cron'])
  const nobody = await command(home, ['pack', 'unload', 'crom'])

  assert.match(out.stdout, /^mcp +Unloaded.*\n +for this run\nwith it went\n {2}mcp-v2 +waits for mcp\n$/)
  assert.match(back.stdout, /^mcp +Active.*\nwith it came mcp-v2\n$/)
  assert.match(anew.stdout, /^mcp +Active.*\n$/)
  assert.equal(nobody.stderr, "svc-code: no pack 'crom'; did you mean cron?\n")
  assert.match(alone.stdout, /^cron +Unloaded.*\n +for this run\n$/)
})

test('unknown names and options in [packs] are told by commands that do not need packs', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), '[packs]\ndisable = ["tols-web"]\n[packs.config.sessions]\nmax_idel = 1\n')
  const { stderr } = await command(home, ['instances'])
  assert.match(stderr, /warning: \[packs\] disable in config\.toml: no default pack is named 'tols-web'; did you mean tools-web\?\n/)
  assert.match(stderr, /warning: config\.toml: bad deployment config for pack sessions: unknown max_idel/)

  const packs = await command(home, ['packs'])
  assert.match(packs.stderr, /no server can start: unknown pack 'tols-web' in .*Did you mean tools-web\? svc-code packs lists them\.\n/)
  assert.match(packs.stdout, /^tools-web +not started/m)
  assert.equal(packs.code, 1)

  const load = '["./opt.mjs", "./tods/pack.mjs", "svc-code-skill"]'
  const table = ['opt', 'tods', 'skill', 'plann', 'gut', 'titels'].map(name => `[packs.config.${name}]\nword = "x"\n`).join('')
  await writeFile(join(home, 'config.toml'), `[packs]\nload = ${load}\nisolate = ["plann"]\n${table}`)
  assert.deepEqual((await command(home, ['instances'])).stderr.match(/'\w+'; did you mean \w+/g), [
    "'gut'; did you mean git",
    "'titels'; did you mean titles"
  ])
})

test('a pack that is listed or served already has no twin: another spelling is the same pack, another file of its name is refused', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const [place, other, link] = [join(dir, 'words'), join(dir, 'others'), join(dir, 'link')]
  const write = async (at: string, text: string) => {
    await mkdir(at, { recursive: true })
    await writeFile(
      join(at, 'pack.mjs'),
      `import { definePack, defineRoute, Type } from 'svc-code/kernel'
       const words = defineRoute({ method: 'GET', path: '/api/v1/words', summary: 'Words', auth: 'none', data: Type.String() })
       export default definePack({ name: 'words', setup: ctx => void ctx.route(words, () => '${text}') })`
    )
  }
  await write(place, 'one')
  await write(other, 'other')
  await symlink(place, link)
  const load = async () => /^load = (.*)$/m.exec(await readFile(join(home, 'config.toml'), 'utf8'))?.[1]
  const server = await serve(t, home, '--port', '0', '--pack', place)
  const words = async () => ((await (await fetch(`${server.url}/api/v1/words`)).json()) as { data: string }).data
  const names = async () => (await command(home, ['packs'])).stdout.match(/^words\S*/gm)

  assert.equal((await command(home, ['pack', 'add', '--in-process', place])).stdout, 'added words, Active\n')
  assert.deepEqual([await names(), await load()], [['words'], `["${place}"]`])
  await write(place, 'two')
  for (const again of [join(place, 'pack.mjs'), `${place}/../words`, link])
    assert.equal((await command(home, ['pack', 'add', '--in-process', again])).stdout, `listed already as ${place}: words, Active\n`)
  assert.deepEqual([await names(), await load(), await words()], [['words'], `["${place}"]`, 'two'])
  for (const [apart, how] of [
    [true, []],
    [false, ['--in-process']]
  ] as const) {
    assert.equal((await command(home, ['pack', 'add', ...how, link])).code, 0)
    assert.equal(/process \d+ of its own/.test((await command(home, ['packs', 'words'])).stdout), apart)
  }

  await writeFile(join(dir, 'words.sh'), 'echo\n')
  assert.match(
    (await command(home, ['pack', 'add', join(dir, 'words.sh')])).stderr,
    /^svc-code: not added: words: \S+words\.sh: Unknown file/
  )

  const refused = await command(home, ['pack', 'add', other])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /not added: a pack named 'words' is listed already, as .*words; .*: svc-code pack remove words\n/)
  assert.match((await command(home, ['pack', 'remove', link])).stdout, /the running server has it from its command line\n$/)
  const shadowed = await command(home, ['pack', 'add', '--in-process', other])
  assert.match(shadowed.stderr, /warning: .*'.*others', whose pack 'words' the command line brings already\n/)
  assert.deepEqual([await names(), await words()], [['words'], 'two'])
})

const plain = (name: string, version: string, setup = '') =>
  `import { definePack } from 'svc-code/kernel'\nexport default definePack({ name: '${name}', version: '${version}', setup(ctx) {${setup}} })\n`

test('a directory whose build is older than its source is added with a warning', async () => {
  const dir = await freshDir()
  const place = join(dir, 'twice')
  await mkdir(join(place, 'dist'), { recursive: true })
  await writeFile(join(place, 'package.json'), '{ "name": "twice", "type": "module", "exports": "./dist/pack.js" }')
  await writeFile(join(place, 'dist', 'pack.js'), plain('twice', '1.0.0'))
  await writeFile(join(place, 'pack.js'), plain('twice', '1.0.0'))
  await utimes(join(place, 'dist', 'pack.js'), 1, 1)

  const old = await command(join(dir, 'home'), ['pack', 'add', place])
  await utimes(join(place, 'pack.js'), 1, 1)
  const fresh = await command(join(dir, 'home'), ['pack', 'add', place])

  assert.equal(old.stderr, 'warning: dist/pack.js is loaded, which is older than pack.js: npm run build makes it anew\n')
  assert.deepEqual([old.code, fresh.code, fresh.stderr], [0, 0, ''])
})

test('packs that several commands add at once are all listed', async () => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const names = ['one', 'two', 'three']
  for (const name of names) await writeFile(join(dir, `${name}.mjs`), plain(name, '1.0.0'))

  const added = await Promise.all(names.map(name => command(home, ['pack', 'add', join(dir, `${name}.mjs`)])))

  assert.deepEqual(
    added.map(({ code }) => code),
    [0, 0, 0]
  )
  const listed = (await command(home, ['packs'])).stdout
  for (const name of names) assert.match(listed, new RegExp(`^${name} +not started`, 'm'))
  assert.equal(/^isolate = (.*)$/m.exec(await readFile(join(home, 'config.toml'), 'utf8'))?.[1]?.match(/\w+/g)?.length, 3)
})

test('a version that fails leaves the one before in its place', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  await serve(t, home, '--port', '0')
  const place = join(dir, 'keeper')
  await mkdir(place)
  const packed = async (version: string, setup: string) => {
    await writeFile(join(place, 'package.json'), JSON.stringify({ name: 'svc-code-keeper', version, type: 'module', exports: './pack.js' }))
    await writeFile(join(place, 'pack.js'), plain('keeper', version, setup))
    assert.equal(spawnSync('npm', ['pack', '--silent'], { cwd: place }).status, 0)
    return join(place, `svc-code-keeper-${version}.tgz`)
  }
  const keeper = async () => (await command(home, ['packs', 'keeper'])).stdout
  assert.equal((await command(home, ['pack', 'add', await packed('1.0.0', '')])).code, 0)

  const newer = await command(home, ['pack', 'add', await packed('2.0.0', 'ctx.slot({})')])

  assert.equal(newer.code, 1)
  assert.match(newer.stderr, /^svc-code: still the version before: keeper: ctx\.slot .*\(--in-process runs it/)
  assert.match(await keeper(), /^keeper +Active, 1\.0\.0,[\s\S]*process \d+ of its own/)
  const unreadable = await packed('3.0.0', '')
  await writeFile(join(place, 'pack.js'), 'export default (')
  assert.equal(spawnSync('npm', ['pack', '--silent'], { cwd: place }).status, 0)
  assert.match((await command(home, ['pack', 'add', unreadable])).stderr, /^svc-code: not added: .*pack\.js:1: /)
  assert.match(await keeper(), /^keeper +Active, 1\.0\.0/)
})

test('a pack that the configuration asks for elsewhere is not removed', async () => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  await mkdir(home)
  await writeFile(join(dir, 'own.mjs'), plain('own', '1.0.0').replace('name:', "provides: [{ kind: 'service', id: 'uploads' }], name:"))
  const config = `[packs]\nload = ["../own.mjs"]\ndisable = ["files"]\nrequire = ["own"]\n[packs.replace]\nuploads = "own"\n`
  await writeFile(join(home, 'config.toml'), config)

  const refused = await command(home, ['pack', 'remove', 'own'])

  assert.match(refused.stderr, /not removed: without it no server starts; .* 'own' of \[packs\] require, 'uploads' of \[packs\.replace\]/)
  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), config)
})
