/** What is wrong with home, token or limits is said at once: no hang, no silence. */
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import fs, { statSync } from 'node:fs'
import { access, chmod, mkdir, readdir, symlink, truncate, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { homeOf } from '../../../features/cli/deployment.ts'
import { assertLinks, homeOfUser } from '../../../kernel/home.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { run, runWith, serve, serveWith } from '../../helpers/cli.ts'
import { command } from '../../helpers/cli-io.ts'
import { freshDir } from '../../helpers/temp.ts'

const main = fileURLToPath(new URL('../../../bundle/main.js', import.meta.url))
const mkfifo = async (path: string) => promisify(execFile)('mkfifo', ['-m', '600', path])

test('a pipe in place of the token file stops the start', async () => {
  const home = await freshDir()
  await mkfifo(join(home, 'server.token'))
  const { code, stderr } = await run(home, '--port', '0')
  assert.deepEqual([code, stderr], [1, `svc-code: ${home}/server.token is not a regular file\n`])
  assert.match((await run(home, 'token')).stderr, /server\.token is not a regular file/)
})

test('a pipe in place of the configuration stops the start', async () => {
  const home = await freshDir()
  await mkfifo(join(home, 'config.toml'))
  const { code, stderr } = await run(home, '--port', '0')
  assert.equal(code, 1)
  assert.match(stderr, /config\.toml cannot be read: .*is not a regular file/)
})

test('a token file or a configuration of several GB stops the start, and is not read', async () => {
  for (const [name, says] of [
    ['server.token', /server\.token is larger than 8388608 bytes/],
    ['config.toml', /config\.toml.* is larger than 8388608 bytes/]
  ] as const) {
    const home = await freshDir()
    await writeFile(join(home, name), '', { mode: 0o600 })
    await truncate(join(home, name), 5_000_000_000)
    const { code, stderr } = await run(home, '--port', '0')
    assert.equal(code, 1, name)
    assert.match(stderr, says)
  }
})

test('a home that cannot be made is named with the reason', { skip: process.platform !== 'linux' }, async () => {
  for (const home of ['/proc/nowhere', '/proc/nowhere/deeper', '/dev/null/home']) {
    const { code, stderr } = await run(home, '--port', '0')
    assert.equal(code, 1)
    assert.ok(stderr.includes(home), stderr)
    assert.equal(stderr.trim().split('\n').length, 1)
  }
  assert.match((await run('/proc/nowhere', 'token', 'rotate')).stderr, /the home \/proc\/nowhere cannot be made: .*--home/)
})

test('commands say of a home that is a file, lies below one, or is a link to nothing, what it is and what to do', async () => {
  const dir = await freshDir()
  const [file, link] = [join(dir, 'file'), join(dir, 'link')]
  await writeFile(file, '')
  await symlink(join(dir, 'nothing'), link)
  const cases = [
    [join(dir, '\ufffd'), `the home ${dir}/\ufffd has a name that is not UTF-8; choose another one with --home`],
    [link, `the home ${link} is a link to something that is not there; choose another one with --home`],
    [file, `the home ${file} is no directory; choose another one with --home`],
    [join(file, 'below'), `the home ${file}/below cannot be made: ${file} is no directory; choose another one with --home`]
  ] as const
  for (const [home, words] of cases) {
    for (const args of [['status'], ['token'], ['run', '--demo', 'hi'], ['serve']]) {
      const ran = await command(home, args)
      assert.equal(ran.code, 1)
      assert.ok(ran.stderr.startsWith(`svc-code: ${words}`), `${args}: ${ran.stderr}`)
    }
    const doctor = await command(home, ['doctor'])
    assert.deepEqual([doctor.code, doctor.stderr], [1, ''])
    assert.ok(doctor.stdout.startsWith(`failed  home  ${words}`), doctor.stdout)
  }
})

test('a home that this user cannot write, or make, fails in doctor and stops what would write to it', {
  skip: process.getuid?.() === 0 ? 'nothing is forbidden to this user' : process.platform === 'win32'
}, async t => {
  const dir = await freshDir()
  await mkdir(join(dir, 'home'))
  for (const path of [join(dir, 'home'), dir]) await chmod(path, 0o500)
  t.after(async () => {
    for (const path of [dir, join(dir, 'home')]) await chmod(path, 0o700)
  })
  for (const home of [join(dir, 'home'), join(dir, 'none')]) {
    const doctor = await command(home, ['doctor'])
    assert.equal(doctor.code, 1)
    assert.match(doctor.stdout, /^failed +home +the home .* cannot be written by this user \(EACCES\); choose another one with --home/)
    assert.match((await command(home, ['run', '--demo', 'hi'])).stderr, /^svc-code: the home .* cannot be written by this user/)
    assert.match((await command(home, ['status'])).stdout, /^no server runs on/)
  }
})

test('a home behind a link, below directories that are missing, is made for its owner alone', async t => {
  const dir = await freshDir()
  await mkdir(join(dir, 'real'))
  await symlink(join(dir, 'real'), join(dir, 'link'))
  const server = await serve(t, join(dir, 'link', 'a', 'b'), '--port', '0')
  await access(join(dir, 'real', 'a', 'b', 'server.token'))
  assert.doesNotMatch(server.printed(), /open to other users/)
})

test('without a HOME the home must be named', async () => {
  for (const HOME of ['', 'relative']) {
    const { code, stderr } = await runWith({ HOME, SVC_CODE_HOME: '' }, '--port', '0')
    assert.equal(code, 1)
    assert.match(stderr, /HOME is empty.*--home or SVC_CODE_HOME/)
  }
})

test('a user whom the system does not know, as in a container, names the home and works', async t => {
  const unknown = `import os from 'node:os'
    import { syncBuiltinESMExports } from 'node:module'
    os.homedir = () => { throw new Error('uv_os_homedir returned ENOENT') }
    syncBuiltinESMExports()`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(unknown)}`
  const nameless = await runWith({ NODE_OPTIONS, SVC_CODE_HOME: '' }, '--port', '0')
  assert.equal(nameless.code, 1)
  assert.match(nameless.stderr, /^svc-code: HOME is .*not set.*--home or SVC_CODE_HOME\n$/)
  const env = { NODE_OPTIONS, SVC_CODE_HOME: await freshDir() }
  await serveWith(t, env, '--port', '0', '--demo', '--require', 'capabilities')
  const { code, stdout } = await runWith(env, 'run', '--json', '--cwd', await freshDir(), 'list the files')
  const results = stdout.split('\n').filter(line => line.includes('"tool.result"'))
  assert.deepEqual([code, results.length, /isError/.exec(stdout)], [0, 1, null], stdout)
})

test('a home on a file system without hard links is refused with the reason', async () => {
  const exfat = `import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const refused = () => { throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM', errno: -1, syscall: 'link' }) }
    fs.linkSync = refused
    fs.promises.link = async () => refused()
    syncBuiltinESMExports()`
  const home = await freshDir()
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(exfat)}`
  const { code, stderr } = await runWith({ NODE_OPTIONS, SVC_CODE_HOME: home }, '--port', '0')
  assert.equal(code, 1)
  assert.match(stderr, /^svc-code: the file system of the home \S+ has no hard links \(EPERM\).*--home\n$/)
  assert.deepEqual(await readdir(home), [])
})

test('a home whose disk is full is not one without hard links', async t => {
  const home = await freshDir()
  const refused = (code: 'ENOSPC' | 'EMLINK') => () => {
    throw Object.assign(new Error(code), { code, errno: -constants.errno[code], syscall: 'link' })
  }
  const linkSync = t.mock.method(fs, 'linkSync', refused('ENOSPC'))
  mockedBuiltins(t)
  assertLinks(home)
  linkSync.mock.mockImplementation(refused('EMLINK'))
  assert.throws(() => assertLinks(home), /has no hard links \(EMLINK\)/)
  assert.deepEqual(await readdir(home), [])
})

test('limits that are too small to start are told', { skip: process.platform !== 'linux' }, async () => {
  for (const [limit, says] of [
    ['-n 32', /too few file descriptors \(limit 32\).*ulimit -n/],
    ['-n 255', /too few file descriptors \(limit 255\).*ulimit -n/],
    ['-v 8388608', /too little address space \(limit 8 GiB\).*ulimit -v/]
  ] as const) {
    const child = spawn('sh', ['-c', `ulimit ${limit} && exec "$0" "$1" --port 0`, process.execPath, main], {
      env: { ...process.env, SVC_CODE_HOME: await freshDir(), SVC_CODE_CATALOG_URL: 'off' }
    })
    let stderr = ''
    child.stderr.on('data', chunk => {
      stderr += String(chunk)
    })
    const code = await new Promise(resolve => child.once('close', resolve))
    assert.equal(code, 1)
    assert.match(stderr, says)
  }
})

test('an entry of SVC_CODE_CORS_ORIGINS that no page can have is warned of', async t => {
  const origins = 'https://a.example/, *, chrome-extension://abc,https://b.example:443'
  const server = await serveWith(t, { SVC_CODE_HOME: await freshDir(), SVC_CODE_CORS_ORIGINS: origins }, '--port', '0')
  const odd = [...server.printed().matchAll(/warning: (\S+) in SVC_CODE_CORS_ORIGINS is not an origin/g)].map(([, origin]) => origin)
  assert.deepEqual(odd, ['*', 'https://b.example:443'])
})

test('a home and a configuration that others can read are warned of, with a command for a shell', async t => {
  const home = join(await freshDir(), "my $(echo mistake)'s home")
  await mkdir(home)
  await chmod(home, 0o755)
  await writeFile(join(home, 'config.toml'), '', { mode: 0o644 })
  const server = await serve(t, home, '--port', '0')
  const warned = [...server.printed().matchAll(/warning: the (home|configuration) .* is open to other users \(mode (\d+)\); run: (.*)/g)]
  assert.deepEqual(
    warned.map(([, what, mode]) => [what, mode]),
    [
      ['home', '0755'],
      ['configuration', '0644']
    ]
  )
  for (const [, , , remedy = ''] of warned) execFileSync('sh', ['-c', remedy])
  assert.deepEqual([statSync(home).mode & 0o777, statSync(join(home, 'config.toml')).mode & 0o777], [0o700, 0o600])
})

test('a level in SVC_CODE_LOG_LEVEL that is none is warned of', async t => {
  const server = await serveWith(t, { SVC_CODE_HOME: await freshDir(), SVC_CODE_LOG_LEVEL: 'nope' }, '--port', '0')
  assert.match(server.printed(), /^warning: SVC_CODE_LOG_LEVEL nope is unknown: give one of trace, .*; info is used$/m)
})

test('a command whose pack is not active says where the reason is', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), '[packs.config.agent]\nretry_base_ms = "x"\n', { mode: 0o600 })

  const { code, stderr } = await command(home, ['run', '--demo', 'hi'])

  assert.equal(code, 1)
  assert.match(stderr, /no such route: POST \S+\/prompts; the pack that answers it is not active: svc-code packs says why\n$/)
})

test('run says which packs failed when it starts a server of its own', async () => {
  const home = await freshDir()

  const { code, stderr } = await command(home, ['run', '--demo', '--pack', './nofile.js', 'hi'])

  assert.equal(code, 0)
  assert.match(stderr, /^warning: pack nofile failed: \.\/nofile\.js: there is no file .*nofile\.js\n/)
})

test('a ~/ in the name of a home that no shell has replaced is the home directory of the user', () => {
  assert.equal(homeOf({ home: '~/x' }, {}), join(homeOfUser(), 'x'))
  assert.equal(homeOf({}, { SVC_CODE_HOME: '~/x' }), join(homeOfUser(), 'x'))
  assert.equal(homeOf({}, {}), join(homeOfUser(), '.svc-code'))
})

test('a configuration that cannot be used is told once by the start, and packs that wait for the same are told together', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), 'telemetry = maybe\n', { mode: 0o600 })
  const waiting = /^\d+ wait for sessions, interactions: (?:[a-z0-9-]+, ){4}[a-z0-9-]+ and \d+ more \(svc-code packs\)$/

  const printed = (await serve(t, home, '--port', '0', '--disable', 'sessions', '--disable', 'interactions')).printed()
  assert.equal(printed.match(/config\.toml cannot be used/g)?.length, 1, printed)
  const [, lines = ''] = /^ {2}packs {3}\d+ active, \d+ not:\n((?: {10}.*\n)*)/m.exec(printed) ?? []
  assert.match(lines.trim(), waiting)

  await writeFile(join(home, 'config.toml'), '[packs]\ndisable = ["sessions", "interactions"]\n', { mode: 0o600 })
  const { stdout } = await command(home, ['doctor', '--offline', '--json'])
  const { checks } = JSON.parse(stdout) as { checks: { subject: string; text: string }[] }
  const [, ...told] = checks.filter(({ subject }) => subject === 'packs')
  assert.equal(told.length, 1)
  assert.match(told[0]?.text ?? '', waiting)
})

test('a start names the demo model only while its pack is there', async t => {
  const { printed } = await serve(t, await freshDir(), '--port', '0', '--demo', '--disable', 'demo-model')
  assert.doesNotMatch(printed(), /demo\/demo|^ {2}try /m)
})
