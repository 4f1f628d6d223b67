/** The commands against a running server, and on homes without one. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readable } from '../../../features/cli/logs.ts'
import { readToken } from '../../../kernel/access/token.ts'
import { definePack, defineRoute, Type } from '../../../kernel/index.ts'
import { run } from '../../helpers/cli.ts'
import { command } from '../../helpers/cli-io.ts'
import { latch } from '../../helpers/latch.ts'
import { modelConfig } from '../../helpers/model-config.ts'
import { newSession, prompt, scene } from '../../helpers/scene.ts'
import { freshDir } from '../../helpers/temp.ts'

test('commands talk to the running server of the home', async t => {
  const { page, home, cwd, server } = await scene(t, [[{ text: 'done' }]])
  const author = await page()
  const id = await newSession(author, cwd)
  const other = await newSession(author, cwd)
  const done = author.next('prompt.completed')
  await author.openSession(id)
  await prompt(author, id, 'count the teas')
  await done

  await t.test('sessions are listed, shown by the beginning of their id, archived and restored', async () => {
    const listed = await command(home, ['sessions'])
    assert.match(listed.stdout, new RegExp(`^${id} +\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d +completed +${cwd} +count the teas$`, 'm'))
    assert.match((await command(home, ['sessions', 'show', id.slice(8, 20)])).stdout, /^last prompt +count the teas$/m)
    assert.equal(JSON.parse((await command(home, ['sessions', 'show', id, '--json'])).stdout).id, id)
    const missing = await command(home, ['sessions', 'show', 'session_0none'])
    assert.deepEqual([missing.code, missing.stderr], [1, 'svc-code: no session session_0none\n'])
    assert.match((await command(home, ['sessions', 'show', 'session_'])).stderr, /fits 2 sessions/)

    assert.equal((await command(home, ['sessions', 'archive', other])).stdout, `archived ${other}\n`)
    assert.doesNotMatch((await command(home, ['sessions'])).stdout, new RegExp(other))
    assert.match((await command(home, ['sessions', '--all'])).stdout, new RegExp(`^${other} .* archived `, 'm'))
    assert.equal((await command(home, ['sessions', 'restore', other])).stdout, `restored ${other}\n`)
    assert.equal((JSON.parse((await command(home, ['sessions', '--json'])).stdout) as unknown[]).length, 2)
  })

  await t.test('a session is written to an archive, which is not written over', async () => {
    const file = join(cwd, 'session.zip')
    assert.equal((await command(home, ['sessions', 'export', id, file])).stdout, `exported ${id} to ${file}\n`)
    assert.equal((await readFile(file)).subarray(0, 4).toString('latin1'), 'PK\u0003\u0004')
    assert.equal((await command(home, ['sessions', 'export', id, file])).stderr, `svc-code: ${file} is there already\n`)
    assert.match((await command(home, ['sessions', 'export', 'session_0none', file])).stderr, /no session/)
  })

  await t.test('a session is deleted while the server runs', async () => {
    const gone = await newSession(author, cwd)
    assert.equal((await command(home, ['sessions', 'rm', gone, '--yes'])).stdout, `deleted ${gone}\n`)
    assert.equal((await author.get(`/api/v1/sessions/${gone}`)).code, 40401)
    assert.deepEqual(
      (await readdir(home, { recursive: true })).filter(name => name.includes(gone)),
      []
    )
  })

  await t.test('models and the default among them, and a name that is none', async () => {
    assert.match((await command(home, ['models'])).stdout, /^\* m +p +64000 +thinking +upstream-model$/m)
    assert.equal((await command(home, ['models', 'use', 'm'])).stdout, 'the default model is m\n')
    const none = await command(home, ['models', 'use', 'x'])
    assert.equal(none.code, 1)
    assert.match(none.stderr, /^svc-code: model .*not found; svc-code models lists those that are configured\n$/)
  })

  await t.test('the configuration is read and changed by keys, and what is wrong is told with its key', async () => {
    assert.equal((await command(home, ['config', 'get', 'default_model'])).stdout, 'm\n')
    assert.equal((await command(home, ['config', 'set', 'default_permission_mode', 'yolo'])).stdout, 'yolo\n')
    assert.equal((await command(home, ['config', 'get', 'default_permission_mode'])).stdout, 'yolo\n')
    assert.equal((await command(home, ['config', 'set', 'models.m.max_context_size', '65000'])).stdout, '65000\n')
    const wrong = await command(home, ['config', 'set', 'default_permission_mode', 'loud'])
    assert.equal(wrong.code, 1)
    assert.match(wrong.stderr, /^svc-code: default_permission_mode: /)
    for (const key of ['nothing.here', 'toString', 'providers.__proto__']) {
      const unset = await command(home, ['config', 'get', key])
      assert.deepEqual([unset.code, unset.stdout], [1, ''], key)
    }
    assert.equal((await command(home, ['config', 'get', 'default_model', '--json'])).stdout, '"m"\n')
    assert.ok(JSON.parse((await command(home, ['config', 'get'])).stdout).providers.p)
  })

  await t.test('a key that is not written is no success, and a secret is written without being shown', async () => {
    const file = async () => await readFile(join(home, 'config.toml'), 'utf8')
    const before = await file()
    for (const key of ['foo', 'raw.foo', '__proto__.foo']) {
      const ignored = await command(home, ['config', 'set', key, 'bar'])
      assert.deepEqual([ignored.code, ignored.stdout], [1, ''], key)
      assert.equal(ignored.stderr, `svc-code: ${key} is no key that the configuration knows: nothing was written\n`)
    }
    const nothing = await command(home, ['config', 'set', 'default_model', 'null'])
    assert.deepEqual([nothing.code, nothing.stderr], [2, 'svc-code: null takes nothing out: remove default_model from config.toml\n'])
    assert.equal(await file(), before)

    for (const round of [1, 2]) {
      const secret = await command(home, ['config', 'set', 'providers.p.env.TEA_API_KEY', 'oolong'])
      assert.deepEqual([secret.code, secret.stdout], [0, ''], String(round))
      assert.equal(secret.stderr, 'providers.p.env.TEA_API_KEY is written; it is not shown\n')
    }
    assert.match(await file(), /TEA_API_KEY = "oolong"/)
    assert.equal((await command(home, ['config', 'set', 'task.max_running_tasks', '3'])).code, 0) // an alias of background
    assert.equal((await command(home, ['config', 'get', 'background.max_running_tasks'])).stdout, '3\n')
  })

  await t.test('status, instances and packs say what runs', async () => {
    const status = await command(home, ['status'])
    assert.equal(status.code, 0)
    assert.match(status.stdout, new RegExp(`^server +${server.url} +pid ${process.pid}`, 'm'))
    assert.match(status.stdout, /^model +m is ready$/m)
    assert.match(status.stdout, /^sessions +2, 0 busy, 0 waiting for an answer$/m)
    assert.equal(JSON.parse((await command(home, ['status', '--json'])).stdout).servers[0].sessions.total, 2)
    assert.equal(JSON.parse((await command(home, ['instances', '--json'])).stdout)[0].url, server.url)
    const { running, packs } = JSON.parse((await command(home, ['packs', '--json'])).stdout)
    assert.ok(running && packs.every((one: { state: string }) => one.state === 'Active'))
  })

  await t.test('open says that there is no web page, and prints the address of one where there is no browser', async () => {
    const none = await command(home, ['open'])
    assert.deepEqual([none.code, none.stdout], [1, ''])
    assert.match(none.stderr, /^svc-code: the server at http:\S+ has no web page: a pack brings one \(svc-code --pack/)

    const spec = defineRoute({ method: 'GET', path: '/{+file}', summary: 'A page', auth: 'none', data: Type.String() })
    await server.kernel.load(definePack({ name: 'page', setup: ctx => void ctx.route(spec, () => 'page') }))
    const opened = await command(home, ['open'])
    await server.kernel.change({ remove: ['page'] })
    assert.equal(opened.stdout, `${server.url}/#token=${server.token}\n`)
  })

  await t.test('login stores the key of a provider of the directory; an unknown one is answered with those that are there', async () => {
    const piped = await command(home, ['login', 'deepseek', '--key'], { input: 'key-from-pipe\n' })
    assert.equal(piped.code, 0, piped.stderr)
    assert.match(piped.stdout, /^stored the key of deepseek, with \d+ models\nready: the default model is m\n$/)
    const unknown = await command(home, ['login', 'nobody', '--key'], { input: 'key' })
    assert.match(unknown.stderr, /no provider 'nobody' in the model directory; it has .*deepseek/)
    assert.match((await command(home, ['login', 'deepseek', '--key'])).stderr, /no key was given/)
    assert.match((await command(home, ['login', '--key'])).stderr, /--key needs a provider/)
    const asked = await command(home, ['login'], { answers: question => (question === 'Log in to' ? 'DeepSeek' : 'typed-key') })
    assert.deepEqual(asked.asked, ['Log in to', 'API key of deepseek'])
    assert.equal((await author.get('/api/v1/providers/deepseek')).data.api_key, 'typed-key')
    assert.match((await command(home, ['login'])).stderr, /svc-code login <provider>/)
  })

  await t.test('stop ends it and waits for its end', async () => {
    const word = await command(home, ['stop', 'it'])
    assert.deepEqual([word.code, word.stderr.includes("'it' is no port")], [2, true])
    const none = await command(home, ['stop', '1'])
    assert.match(none.stderr, /listens on port 1; there are: \d+/)
    assert.equal((await command(home, ['stop'])).stdout, `stopped the server on ${server.url}\n`)
    assert.equal((await command(home, ['stop'])).stdout, `no server runs on ${home}\n`)
    assert.equal((await command(home, ['status'])).code, 1)
    assert.match((await command(home, ['open'])).stderr, /no server runs on .*; start one with: svc-code/)
  })

  await t.test('without a server the same commands work on the home', async () => {
    assert.match((await command(home, ['sessions'])).stdout, new RegExp(id))
    assert.match((await command(home, ['models'])).stdout, /^\* m /m)
    assert.equal((await command(home, ['config', 'set', 'default_permission_mode', 'manual'])).stdout, 'manual\n')
    assert.equal((await command(home, ['sessions', 'archive', other])).code, 0)
    assert.match((await command(home, ['sessions', '--all'])).stdout, new RegExp(`^${other} .* archived `, 'm'))
    assert.match((await command(home, ['sessions', 'rm', other])).stderr, /nobody can be asked here: rm needs --yes/)
    const kept = await command(home, ['sessions', 'rm', other], { answers: () => false })
    assert.match(kept.asked.join(), new RegExp(`for good\\?\\n {2}${other}`))
    assert.deepEqual([kept.code, kept.stderr], [1, 'svc-code: nothing was deleted\n'])
    assert.equal((await command(home, ['sessions', 'rm', other], { answers: () => true })).stdout, `deleted ${other}\n`)
    assert.deepEqual(
      (await readdir(home, { recursive: true })).filter(name => name.includes(other)),
      []
    )
    const token = await command(home, ['token'])
    assert.deepEqual([token.stdout, token.stderr], [`${server.token}\n`, `no server runs on ${home}\n`])
  })
})

test('token and packs start nothing and make nothing', async () => {
  const home = join(await freshDir(), 'new')
  const token = await command(home, ['token'])
  assert.equal(token.code, 1)
  assert.match(token.stderr, /has no token yet: the first start of a server makes it/)
  const packs = await command(home, ['packs', '--disable', 'workspaces'])
  assert.equal(packs.code, 0)
  assert.match(packs.stderr, /^no server runs on .*: this is what one would load\n$/)
  assert.match(packs.stdout, /^meta +not started/m)
  assert.match(packs.stdout, /^sessions +Pending +\S+ +waits for workspaces$/m)
  assert.match(packs.stdout, /^workspaces +disabled/m)
  await assert.rejects(readdir(home), { code: 'ENOENT' })

  await mkdir(home, { mode: 0o700 })
  await writeFile(join(home, 'broken.mjs'), 'throw new Error("no licence")\n')
  await writeFile(join(home, 'config.toml'), '[packs]\nload = ["./broken.mjs"]\n[packs.config.sessions]\nmax_idle = -1\n')
  const odd = await command(home, ['packs'])
  assert.match(odd.stdout, /^broken +Failed +- +.*broken\.mjs:1: no licence$/m)
  assert.match(odd.stdout, /^sessions +Failed +\S+ +.*max_idle/m)
  assert.deepEqual((await readdir(home)).sort(), ['broken.mjs', 'config.toml'])
})

test('the log is shown in readable lines, from its end, above a level, and followed until Ctrl+C', async () => {
  const home = await freshDir()
  assert.match((await command(home, ['logs'])).stderr, /there is no log at .*svc-code\.log yet/)
  await mkdir(join(home, 'logs'))
  const file = join(home, 'logs', 'svc-code.log')
  const entry = (n: number, level = 30) => `${JSON.stringify({ level, time: 1_700_000_000_000, pack: 'agent', msg: `line ${n}`, n })}\n`
  await writeFile(file, Array.from({ length: 3000 }, (_, n) => entry(n, n % 2 === 0 ? 30 : 40)).join(''))

  const last = (await command(home, ['logs', '-n', '2'])).stdout.split('\n')
  assert.equal(last.length, 3)
  assert.match(last[1] ?? '', /^2023-11-1\d \d\d:\d\d:\d\d warn {2}\[agent\] line 2999 n=2999$/)
  assert.equal((await command(home, ['logs', '-n', '4', '--log-level', 'warn'])).stdout.split('\n').length, 3)
  assert.equal((await command(home, ['logs', '-n', '4', '--log-level', 'silent'])).stdout, '')
  assert.equal((await command(home, ['logs', '-n', '1', '--json'])).stdout, entry(2999, 40))
  assert.equal(readable('no JSON'), 'no JSON')

  let interrupt: () => void = () => undefined
  const seen = latch()
  const begun = latch()
  const replaced = latch()
  const shortened = latch()
  const following = command(home, ['logs', '-f', '-n', '1'], {
    onInterrupt: stop => {
      interrupt = stop
    },
    hear: text => {
      begun.open()
      if (text.includes('fresh')) seen.open()
      if (text.includes('first of the new')) replaced.open()
      if (text.includes('cut')) shortened.open()
    }
  })
  await begun.opened
  await appendFile(file, `${JSON.stringify({ level: 30, msg: 'fresh' })}\n`)
  await seen.opened

  const told = (msg: string) => `${JSON.stringify({ level: 30, msg })}\n`
  appendFileSync(file, told('last of the old'))
  renameSync(file, `${file}.1`)
  writeFileSync(file, told('first of the new'))
  await replaced.opened
  writeFileSync(file, told('cut'))
  await shortened.opened
  interrupt()
  const { code, stdout } = await following
  assert.equal(code, 0)
  assert.deepEqual(stdout.match(/last of the old|first of the new|cut/g), ['last of the old', 'first of the new', 'cut'])
})

test('whoever reads what a command prints gets all of it, however much that is', async () => {
  const home = await freshDir()
  await mkdir(join(home, 'logs'))
  const lines = Array.from({ length: 20_000 }, (_, n) => `${JSON.stringify({ level: 30, msg: 'said and written down '.repeat(8), n })}\n`)
  await writeFile(join(home, 'logs', 'svc-code.log'), lines.join(''))

  for (const count of [10_000, 30_000]) {
    const { stdout } = await run(home, 'logs', '--json', '-n', String(count))
    assert.ok(stdout === lines.slice(-count).join(''), `${stdout.length} characters of ${count} lines`)
  }
})

test('the completions are scripts that the shells understand', async () => {
  const home = await freshDir()
  const bash = (await command(home, ['completion', 'bash'])).stdout
  const ask = (words: string) =>
    spawnSync(
      'bash',
      ['-c', `${bash}\nCOMP_WORDS=(${words} ""); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _svc_code; echo "\${COMPREPLY[*]}"`],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }
    )
  assert.match(ask('svc-code').stdout, /serve run attach sessions/)
  assert.match(ask('svc-code sessions').stdout, /^list show archive restore export rm --all/)
  assert.equal(ask('svc-code help').stderr, '')
  assert.match((await command(home, ['completion', 'zsh'])).stdout, /^#compdef svc-code\n/)
  assert.match((await command(home, ['completion', 'fish'])).stdout, /__fish_seen_subcommand_from run' -l model -s m -x/)
})

test('a command that only looks leaves no lines in the log', async () => {
  const home = await freshDir()
  assert.equal((await command(home, ['sessions'])).code, 0)
  assert.equal((await command(home, ['doctor', '--offline'])).code, 0)
  assert.equal((await command(home, ['logs'])).stdout, '')
})

test('a home without a model says so in models, status of nobody and login', async () => {
  const home = await freshDir()
  assert.match((await command(home, ['models'])).stdout, /no model is configured; svc-code login/)
  assert.ok(readToken(home))
  await writeFile(join(home, 'config.toml'), modelConfig('http://127.0.0.1:1/v1'))
  assert.match((await command(home, ['models'])).stdout, /^\* m /m)
})

test('the demo model is not stored as the default, and a stored one that is not there is none for a login', async () => {
  const home = await freshDir()
  const config = join(home, 'config.toml')
  const use = await command(home, ['models', 'use', 'demo/demo'])
  assert.equal(use.code, 1)
  assert.match(use.stderr, /^svc-code: demo\/demo is there only while a server runs with --demo, so it is not stored/)

  await writeFile(config, 'default_model = "demo/demo"\n', { mode: 0o600 })
  const login = await command(home, ['login', 'deepseek', '--key'], { input: 'key\n' })
  assert.equal(login.code, 0, login.stderr)
  assert.match(login.stdout, /^ready: the default model is deepseek\//m)
  assert.match(await readFile(config, 'utf8'), /^default_model = "deepseek\//m)
})

test('a configuration that cannot be used is told by every command that asks a server, running or not', async t => {
  const { home } = await scene(t, [])
  const config = join(home, 'config.toml')
  const warning = /^warning: config\.toml cannot be used: .*line 1/m
  await writeFile(config, 'default_model = "m\n')
  for (const args of [['models'], ['sessions'], ['config', 'get', 'default_permission_mode']])
    assert.match((await command(home, args)).stderr, warning, args.join(' '))
  const set = await command(home, ['config', 'set', 'default_permission_mode', 'yolo'])
  assert.match(set.stderr, /^svc-code: config\.toml cannot be used, fix it first: /m)

  const alone = await freshDir()
  await writeFile(join(alone, 'config.toml'), 'default_model = "m\n')
  assert.match((await command(alone, ['run', 'hi'])).stderr, warning)
})

test('config get tells a key that nobody reads from one that is not set', async () => {
  const home = await freshDir()
  const said = async (key: string) => (await command(home, ['config', 'get', key])).stderr
  assert.equal(await said('default_model'), 'default_model is not set\n')
  assert.equal(await said('default_modle'), 'svc-code: default_modle is no key that the configuration knows; did you mean default_model?\n')
  assert.match(await said('subagent.timout_ms'), /^svc-code: subagent\.timout_ms is no key .* knows; did you mean timeout_ms\?$/m)
  assert.match(await said('weather'), /^svc-code: weather is no key .* knows; svc-code config get shows what is set$/m)
  assert.equal(
    (await command(home, ['models', 'use', 'x'])).stderr,
    'svc-code: model x not found; svc-code models lists those that are configured\n'
  )
})

test('config set refuses a key that nobody reads, with those that are read there', async () => {
  const home = await freshDir()
  const config = join(home, 'config.toml')
  const text = '[loop_control]\nmax_attempts_per_step = 3\n'
  await writeFile(config, text, { mode: 0o600 })
  const cases = [
    ['loop_control.max_atempts_per_step', /loop_control\.max_atempts_per_step is no key .*did you mean max_attempts_per_step\?/],
    ['loop_control.foo', /loop_control\.foo is no key .*; loop_control has max_steps_per_turn, /],
    ['providers.a.nobody', /providers\.a\.nobody is no key /],
    ['packs.config.agent.x', /^svc-code: \[packs\] is not set this way: edit it in config\.toml, a running server follows$/m]
  ] as const
  for (const [key, words] of cases) {
    const set = await command(home, ['config', 'set', key, '5'])
    assert.equal(set.code, 1, key)
    assert.match(set.stderr, words)
  }
  assert.equal(await readFile(config, 'utf8'), text)
  assert.equal((await command(home, ['config', 'set', 'loop_control.maxAttemptsPerStep', '5'])).code, 0)
  assert.equal((await command(home, ['config', 'set', 'providers.a.env.ANY_NAME', 'x'])).code, 0)
})
