import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { SocketClient } from '../../../kernel/testing.ts'
import { run, serve } from '../../helpers/cli.ts'
import { freshDir } from '../../helpers/temp.ts'

const get = async (url: string, token: string, path: string) => {
  const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
  return { status: answer.status, body: (await answer.json()) as { code: number; data: Record<string, unknown> } }
}

test('the start prints address, token (once) and how to stop; SIGTERM ends it with code 0, closes sockets with 1001 and says so', async t => {
  const home = await freshDir()
  const server = await serve(t, home, '--port', '0')
  assert.equal(server.printed().split(server.token).length, 2)
  assert.doesNotMatch(server.printed(), /^ {2}open /m)
  assert.equal((await readFile(join(home, 'server.token'), 'utf8')).trim(), server.token)
  assert.equal((await get(server.url, server.token, '/api/v1/meta')).body.code, 0)
  const socket = await SocketClient.open(server.url, server.token)
  server.child.kill('SIGTERM')
  assert.deepEqual(await socket.closed, { code: 1001, reason: 'server shutting down' })
  const { code, stdout } = await server.ended
  assert.equal(code, 0)
  assert.match(stdout, /stopping; press Ctrl\+C again to force\n\S+ closing 1 connection of clients\n\S+ stopped\n$/)
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
})

test('POST shutdown answers first, then the process ends', async t => {
  const server = await serve(t, await freshDir(), '--port', '0')
  const answer = await fetch(`${server.url}/api/v1/shutdown`, { method: 'POST', headers: { authorization: `Bearer ${server.token}` } })
  assert.deepEqual(((await answer.json()) as { data: unknown }).data, { ok: true })
  const { code, stdout } = await server.ended
  assert.equal(code, 0)
  assert.match(stdout, /stopping: a client asked for it\n\S+ stopped\n$/)
})

test('of a port that is taken, also one that was asked for, the next free one is used, and the start says who has it', async t => {
  const home = await freshDir()
  const first = await serve(t, home, '--port', '0')
  const { port } = new URL(first.url)

  const second = await serve(t, home, '--port', port)
  const stranger = await serve(t, await freshDir(), '--port', port)

  for (const { url } of [second, stranger]) assert.ok(Number(new URL(url).port) > Number(port))
  assert.ok(
    second
      .printed()
      .includes(`\n  port    ${port} is taken by the server of this home with pid ${first.child.pid}; this is the next free one\n`)
  )
  assert.ok(stranger.printed().includes(`\n  port    ${port} is taken; this is the next free one\n`))
})

test('a second server on the same home works beside the first', async t => {
  const home = await freshDir()
  const first = await serve(t, home, '--port', '0')
  const second = await serve(t, home, '--port', '0')
  assert.notEqual(first.url, second.url)
  assert.equal(first.token, second.token)
  const root = join(home, 'project')
  await mkdir(root)
  const created = await fetch(`${first.url}/api/v1/workspaces`, {
    method: 'POST',
    headers: { authorization: `Bearer ${first.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ root })
  })
  const { data } = (await created.json()) as { data: { id: string } }
  const seen = await get(second.url, second.token, '/api/v1/workspaces')
  assert.deepEqual(
    (seen.body.data.items as { id: string }[]).map(item => item.id),
    [data.id]
  )
  const { stdout } = await run(home, 'instances')
  assert.ok(stdout.includes(first.url) && stdout.includes(second.url))
})

test('token rotate takes effect in the running server without a restart', async t => {
  const home = await freshDir()
  const server = await serve(t, home, '--port', '0')
  const rotated = (await run(home, 'token', 'rotate')).stdout.trim()
  assert.notEqual(rotated, server.token)
  assert.equal((await get(server.url, rotated, '/api/v1/meta')).status, 200)
  assert.equal((await get(server.url, server.token, '/api/v1/meta')).status, 401)
  assert.equal((await run(home, 'token')).stdout.trim(), rotated)
})

test('bad flags end with code 2 and a hint; a non-loopback bind needs its flag', async () => {
  const home = await freshDir()
  const bad = await run(home, '--prot', '1')
  assert.equal(bad.code, 2)
  assert.match(bad.stderr, /Did you mean --port\?/)
  const open = await run(home, '--host', '0.0.0.0', '--port', '0')
  assert.equal(open.code, 1)
  assert.match(open.stderr, /--insecure-no-tls/)
})

test('a third-party pack outside the project loads by path and imports svc-code/kernel', async t => {
  const dir = await freshDir()
  await writeFile(
    join(dir, 'hello.mjs'),
    `import { definePack, defineRoute, Type } from 'svc-code/kernel'
     import { Sessions } from 'svc-code/features/sessions'
     const hello = defineRoute({ method: 'GET', path: '/api/v1/hello', summary: 'Hello', data: Type.Object({ text: Type.String() }) })
     export default definePack({
       name: 'hello', version: '3.1.4', needs: { sessions: Sessions },
       config: Type.Object({ text: Type.String({ default: 'hello' }) }),
       setup(ctx) {
         ctx.route(hello, () => ({ text: ctx.config.text }))
         ctx.tap(ctx.hooks.started, () => { throw new Error('no greeting') })
       }
     })`
  )
  const home = join(dir, 'home')
  await mkdir(home, { mode: 0o700 })
  await writeFile(
    join(home, 'config.toml'),
    '[packs]\nload = ["../hello.mjs"]\ndisable = ["tools-shell"]\n[packs.config.hello]\ntext = "moin"\n'
  )
  const server = await serve(t, home, '--port', '0')
  assert.deepEqual((await get(server.url, server.token, '/api/v1/hello')).body.data, { text: 'moin' })
  const listed = (await run(home, 'packs')).stdout
  assert.match(listed, /^hello +Active +3\.1\.4 +1 fault, last: tap of started: no greeting$/m)
  assert.match(listed, /^tools-shell +disabled/m)
})

test('required packs that are not active end the start with one clear error', async () => {
  const home = await freshDir()
  const required = await run(home, '--port', '0', '--disable', 'workspaces', '--require', 'sessions', '--require', 'agent')
  assert.equal(required.code, 1)
  assert.match(required.stderr, /sessions: waiting for workspaces; agent: waiting for/)
})

test('a second signal forces the end when a pack will not let go', async t => {
  const home = await freshDir()
  await writeFile(
    join(home, 'stuck.mjs'),
    `import { definePack } from 'svc-code/kernel'
     export default definePack({ name: 'stuck', setup(ctx) { ctx.own(() => new Promise(() => undefined)) } })`
  )
  const server = await serve(t, home, '--port', '0', '--pack', join(home, 'stuck.mjs'))
  server.child.kill('SIGINT')
  while (!server.printed().includes('stopping')) await once(server.child.stdout as NonNullable<typeof server.child.stdout>, 'data')
  server.child.kill('SIGINT')
  assert.equal((await server.ended).code, 130)
})

test('a server that is told to stop while it starts does not say that it is ready', async () => {
  const home = await freshDir()
  await writeFile(
    join(home, 'late.mjs'),
    `import { once } from 'node:events'
     import { definePack } from 'svc-code/kernel'
     export default definePack({ name: 'late', async setup() {
       process.kill(process.pid, 'SIGINT')
       await once(process, 'SIGINT')
     } })`
  )

  const { code, stdout, stderr } = await run(home, '--port', '0', '--pack', join(home, 'late.mjs'))

  assert.deepEqual([code, stdout, stderr], [0, 'stopping; press Ctrl+C again to force\nstopped\n', ''])
})

const page = `import { definePack, defineRoute, Type } from 'svc-code/kernel'
const home = defineRoute({ method: 'GET', path: '/{+file}', summary: 'Page', auth: 'none', data: Type.String() })
export default definePack({ name: 'page', setup(ctx) { ctx.route(home, ({ params }) => 'page ' + params.file) } })
`

test('a server on all addresses names a URL that opens, once a pack serves a page, and no shutdown route that is not there', async t => {
  const dir = await freshDir()
  await writeFile(join(dir, 'page.mjs'), page)
  const open = await serve(t, dir, '--port', '0', '--host', '0.0.0.0', '--insecure-no-tls', '--pack', join(dir, 'page.mjs'))
  const { port } = new URL(open.url)
  assert.match(open.printed(), new RegExp(`open {4}http://127\\.0\\.0\\.1:${port}/#token=`))
  assert.equal(open.printed().split(open.token).length, 2)
  assert.equal((await get(`http://127.0.0.1:${port}`, '', '/')).body.data, 'page ')
  assert.match(open.printed(), /stop {4}Ctrl\+C\n/)
  assert.equal((await get(`http://127.0.0.1:${port}`, open.token, '/api/v1/shutdown')).status, 404)

  const remote = await serve(t, await freshDir(), '--port', '0', '--host', '0.0.0.0', '--insecure-no-tls', '--allow-remote-shutdown')
  assert.match(remote.printed(), /or POST http:\/\/127\.0\.0\.1:\d+\/api\/v1\/shutdown/)
})

test('a server outlives the reader of its output and still stops in good order', async t => {
  const home = await freshDir()
  const server = await serve(t, home, '--port', '0')
  server.child.stdout?.destroy()
  server.child.stderr?.destroy()

  server.child.kill('SIGTERM')

  const [code] = (await once(server.child, 'exit')) as [number | null]
  assert.equal(code, 0)
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
})

test('a file that names packs and cannot be understood stops the start: what it disabled must not come back', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), 'default_model = "a\n[packs]\ndisable = ["tools-shell"]\n')
  const { code, stderr } = await run(home, 'serve', '--port', '0')
  assert.equal(code, 1)
  assert.match(stderr, /config\.toml:1:\d+: it mentions packs and cannot be parsed/)

  for (const text of ['[packs\ndisable = ["tools-shell"]\n', '[[packs]]\ndisable = ["tools-shell"]\n']) {
    await writeFile(join(home, 'config.toml'), text)
    const refused = await run(home, 'serve', '--port', '0')
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /config\.toml:1:\d+: /)
  }
  await writeFile(join(home, 'config.toml'), '[packs]\ndisabled = ["tools-shell"]\n')
  assert.match((await run(home, 'packs')).stderr, /config\.toml:2:1: packs\.disabled is unknown; \[packs\] has load, disable/)
})

const faulty = `import { definePack, defineRoute, Type } from 'svc-code/kernel'
const route = (path, fault) => [defineRoute({ method: 'POST', path: '/api/v1/' + path, summary: 'x', data: Type.Null() }), () => (fault(), null)]
export default definePack({
  name: 'faulty',
  setup(ctx) {
    ctx.route(...route('forget', () => void Promise.reject(new Error('nobody waits'))))
    ctx.route(...route('crash', () => void setTimeout(() => { throw new Error('out of a timer') })))
    ctx.route(...route('refused', () => void setTimeout(() => ctx.provide({ id: 'late' }, {}))))
    ctx.route(...route('tangle', () => void setTimeout(() => ctx.route(null))))
  }
})
`

test('a forgotten promise is put down to its pack, an exception out of a timer takes the pack out alone, one out of the middle of the server ends that in good order', async t => {
  const home = await freshDir()
  const pack = join(home, 'faulty.mjs')
  await writeFile(pack, faulty)
  const server = await serve(t, home, '--port', '0', '--pack', pack)
  const post = (path: string) =>
    fetch(`${server.url}/api/v1/${path}`, { method: 'POST', headers: { authorization: `Bearer ${server.token}` } })
  const features = async () => {
    const { data } = (await get(server.url, server.token, '/api/v1/meta')).body
    const row = (data.features as { name: string; state: string; meta: { error?: string; faults?: { last: string } } }[]).at(-1)
    return [row?.name, row?.state, row?.meta.error ?? row?.meta.faults?.last]
  }

  assert.equal((await post('forget')).status, 200)
  assert.deepEqual(await features(), ['faulty', 'Active', 'a promise that nobody waited for: nobody waits'])
  await post('crash')
  const taken = 'warning: pack faulty is taken out until it is reloaded: an exception escaped from a callback: out of a timer'
  while (!server.printed().includes(taken)) await once(server.child.stdout as NonNullable<typeof server.child.stdout>, 'data')
  while ((await post('crash')).status !== 404); // its routes go with it
  assert.equal((await post('packs/faulty:reload')).status, 200)
  await post('refused')
  const refused = "an exception escaped from a callback: pack faulty provides 'late' without declaring it"
  while (!server.printed().includes(refused)) await once(server.child.stdout as NonNullable<typeof server.child.stdout>, 'data')
  while ((await post('refused')).status !== 404);
  assert.deepEqual(await features(), ['faulty', 'Failed', refused])
  assert.equal((await post('packs/faulty:reload')).status, 200)
  await post('crash')
  while ((await post('crash')).status !== 404);
  assert.deepEqual(await features(), ['faulty', 'Failed', 'an exception escaped from a callback: out of a timer'])
  server.child.kill('SIGTERM')
  assert.equal((await server.ended).code, 0)
  const log = await readFile(join(home, 'logs', 'svc-code.log'), 'utf8')
  assert.match(log, /"pack":"faulty".*nobody waits/)

  const again = await serve(t, home, '--port', '0', '--pack', pack)
  await fetch(`${again.url}/api/v1/tangle`, { method: 'POST', headers: { authorization: `Bearer ${again.token}` } })
  const { code, stderr } = await again.ended
  assert.equal(code, 1)
  assert.match(stderr, /stopping after an internal error in pack faulty/)
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
})

test('what is loaded on first use is found by the program as it is installed: a terminal opens', async t => {
  const home = await freshDir()
  const server = await serve(t, home, '--port', '0')
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await answer.json()) as { code: number; data: { id: string; status: string } }
  }
  const session = await post('/sessions', { metadata: { cwd: await freshDir() } })
  const terminal = await post(`/sessions/${session.data.id}/terminals`, { shell: '/bin/sh' })
  assert.deepEqual([terminal.code, terminal.data.status], [0, 'running'])
})
