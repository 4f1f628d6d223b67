import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, stat } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Entry } from '../../../features/mcp/index.ts'
import type { CredentialBook } from '../../../features/mcp-v2/credentials.ts'
import { Flows } from '../../../features/mcp-v2/flows.ts'
import {
  addManaged,
  beginAuth,
  cancelAuth,
  completeAuth,
  deleteManaged,
  readAuthStatuses,
  resetAuth
} from '../../../features/mcp-v2/index.ts'
import mcpV2 from '../../../features/mcp-v2/pack.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { keptOf } from '../../helpers/collected.ts'
import { latch } from '../../helpers/latch.ts'
import { start as startMcp, stdio } from '../mcp/scene.ts'
import { browse, type Guarded, guarded } from './authorization.ts'

async function start(
  t: TestContextLike,
  config: Record<string, unknown> = {},
  { packs = [], ...environment }: { now?: () => Date; packs?: readonly Pack[] } = {}
) {
  const site = await guarded(t)
  const servers = {
    site: { url: site.url },
    local: stdio(),
    header: { url: site.url, headers: { a: 'b' } },
    bearer: { url: site.url, bearerTokenEnvVar: 'X' }
  }
  const scene = await startMcp(t, servers, { packs: [mcpV2, ...packs], config: { 'mcp-v2': config }, ...environment })
  const begin = (name = 'site') => scene.call(beginAuth, { body: { source: 'global', name } })
  const complete = (flowId = '', timeoutMs?: number) => scene.call(completeAuth, { body: { flowId, ...(timeoutMs ? { timeoutMs } : {}) } })
  const status = async () =>
    (await scene.call(readAuthStatuses, { query: { verify: 'false' } })).data.find(({ name }) => name === 'site')?.authStatus
  return { ...scene, site, begin, complete, state: status }
}

async function signIn(scene: { site: Guarded } & Awaited<ReturnType<typeof start>>): Promise<void> {
  const { data } = await scene.begin()
  const page = await browse(data.authorizationUrl ?? '')
  assert.match(page, /Signed in/)
  assert.deepEqual(await scene.complete(data.flowId).then(({ code, data: nothing }) => [code, nothing]), [0, null])
}

test('a login goes through discovery, registration and the browser, and its tools are there in the session', async t => {
  const scene = await start(t)
  const echo = () => scene.run(['mcp__site__echo', { text: 'hi' }])
  assert.equal((await echo())[0]?.isError, true)
  const { code, data } = await scene.begin()
  assert.deepEqual([code, data.status], [0, 'authorization-required'])
  const waiting = scene.complete(data.flowId)
  await browse(data.authorizationUrl ?? '')
  assert.equal((await waiting).code, 0)
  assert.deepEqual(scene.site.grants, ['authorization_code'])
  assert.match(scene.site.registered[0] ?? '', /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  assert.equal((await echo())[0]?.output, 'guarded says hi')
  assert.equal(await scene.state(), 'oauth-authorized')
  assert.deepEqual((await scene.begin()).data, { status: 'already-authorized' })
  assert.equal((await scene.complete(data.flowId)).code, 40001, 'an end is told once')

  const dir = join(scene.home, 'credentials', 'mcp')
  const [file = ''] = (await readdir(dir)).filter(name => name.endsWith('.json'))
  assert.match(file, /^site-[0-9a-f]{24}\.json$/)
  assert.equal((await stat(join(dir, file))).mode & 0o777, 0o600)
  assert.match(await readFile(join(dir, file), 'utf8'), /refresh-/)
})

test('a login that another server of the home got counts here at once, also where nobody tells of it, and so does the next one', async t => {
  const scene = await start(t)
  const other = await startMcp(t, { site: { url: scene.site.url } }, { packs: [mcpV2], home: scene.home })
  await other.status('site', 'needs-auth')
  await signIn(scene)
  await other.status('site', 'connected')
  assert.deepEqual((await other.call(beginAuth, { body: { source: 'global', name: 'site' } })).data, { status: 'already-authorized' })

  await scene.call(resetAuth, { body: { source: 'global', name: 'site' } })
  assert.equal((await other.run(['mcp__site__echo', { text: '' }]))[0]?.isError, true)
  const times = () => other.of('mcp.server.status').filter(({ server }) => (server as { status: string }).status === 'connected').length
  assert.deepEqual([(await other.servers()).site?.status, times()], ['error', 1])
  await signIn(scene)
  await other.waitFor(() => times() === 2)
})

test('the metadata is taken from where the refusal of the server says, and so is the scope', async t => {
  const scene = await start(t)
  scene.site.metadata = '/tenant/a/of-this-resource'
  const { data } = await scene.begin()
  assert.equal(new URL(data.authorizationUrl ?? '').searchParams.get('scope'), 'tools')
  await browse(data.authorizationUrl ?? '')
  assert.equal((await scene.complete(data.flowId)).code, 0)
})

test('a login whose metadata cannot be used is refused in words', async t => {
  const scene = await start(t)
  scene.site.odd = { authorization_endpoint: 'javascript:alert(1)' }
  const { code, msg } = await scene.begin()
  assert.equal(code, 40929)
  assert.match(msg, /^the login cannot begin: what the server says of its login cannot be used \(authorization_endpoint: URL cannot use /)
})

test('a token that ended is renewed before a request, one that is refused after it, and a login that is gone is told', async t => {
  let clock = Date.parse('2026-01-01')
  const scene = await start(t, {}, { now: () => new Date(clock) })
  const renewals = () => scene.site.grants.filter(grant => grant === 'refresh_token').length
  const say = async (text: string) => (await scene.run(['mcp__site__echo', { text }]))[0]
  scene.site.lifetime = 60
  await signIn(scene)
  assert.equal((await say('a'))?.output, 'guarded says a')
  assert.equal(renewals(), 0, 'a short one is used for half of its time')
  scene.site.lifetime = 3600
  clock += 31_000
  assert.equal((await say('b'))?.output, 'guarded says b')
  clock += 3_479_000
  assert.equal((await say('c'))?.output, 'guarded says c')
  assert.equal(renewals(), 1)
  clock += 2000
  assert.equal((await say('d'))?.output, 'guarded says d')
  assert.equal(renewals(), 2, 'one that ends within two minutes is renewed ahead')
  scene.site.expire()
  assert.equal((await say('e'))?.output, 'guarded says e')
  scene.site.expire()
  scene.site.revoke()
  assert.deepEqual(await say('f'), {
    output: 'The MCP server site wants a login: the one that there was does not hold any more.',
    isError: true
  })
  assert.equal(
    scene
      .of('mcp.server.status')
      .map(({ server }) => (server as { status: string }).status)
      .at(-1),
    'needs-auth'
  )
  assert.equal(renewals(), 4, 'a refresh token that is refused is not tried again')
  assert.equal(await scene.state(), 'oauth-expired')
  const verified = await scene.call(readAuthStatuses, { query: { verify: 'true' } })
  assert.equal(verified.data.find(({ name }) => name === 'site')?.authStatus, 'oauth-expired')
  await signIn(scene)
  assert.equal((await say('g'))?.output, 'guarded says g')
})

test('an answer of the login that the browser brings twice is taken once, and both pages say so', async t => {
  const scene = await start(t)
  const { data } = await scene.begin()
  const sent = await fetch(data.authorizationUrl ?? '', { redirect: 'manual' })
  const bring = async () => (await fetch(sent.headers.get('location') ?? '')).text()
  const waiting = scene.complete(data.flowId)
  for (const page of await Promise.all([bring(), bring(), bring()])) assert.match(page, /Signed in/)
  assert.equal((await waiting).code, 0)
  assert.deepEqual(scene.site.grants, ['authorization_code'])
})

test('who denies the login, or sends a wrong state, does not get in', async t => {
  const scene = await start(t)
  const { data } = await scene.begin()
  const callback = new URL(new URL(data.authorizationUrl ?? '').searchParams.get('redirect_uri') ?? '')
  callback.search = 'code=stolen&state=guessed'
  assert.equal((await fetch(callback)).status, 400)
  assert.match(await browse(data.authorizationUrl ?? '', url => url.searchParams.set('deny', '1')), /failed/)
  const answer = await scene.complete(data.flowId)
  assert.equal(answer.code, 40929)
  assert.match(answer.msg, /access_denied/)
  assert.equal(await scene.state(), 'not-applicable')
})

test('a login whose server was removed meanwhile fails, and nothing of it is kept', async t => {
  const scene = await start(t)
  const { data } = await scene.begin()
  assert.equal((await scene.call(deleteManaged, { params: { name: 'site' } })).code, 0)
  assert.match(await browse(data.authorizationUrl ?? ''), /failed/)
  const { code, msg } = await scene.complete(data.flowId)
  assert.deepEqual([code, msg], [40929, 'the MCP server site was removed meanwhile'])
  await scene.call(addManaged, { body: { name: 'site', transport: 'http', url: scene.site.url } })
  assert.equal(await scene.state(), 'not-applicable')
})

test('a code that is refused without words is refused with the code of that', async t => {
  const scene = await start(t)
  const { data } = await scene.begin()
  await browse(data.authorizationUrl ?? '', url => url.searchParams.set('code_challenge', 'another'))
  const { code, msg } = await scene.complete(data.flowId)
  assert.deepEqual([code, msg], [40929, 'the code of the login was not taken: invalid_grant'])
})

test('whatever asks where a login is awaited is answered, and the login goes on', async t => {
  const scene = await start(t)
  const { data } = await scene.begin()
  const { searchParams } = new URL(data.authorizationUrl ?? '')
  const port = new URL(searchParams.get('redirect_uri') ?? '').port
  const ask = async (path: string) => {
    const [reply] = (await once(get({ host: '127.0.0.1', port, path }), 'response')) as [IncomingMessage]
    reply.resume()
    return reply.statusCode
  }
  for (const path of ['//', 'http://[', '*']) assert.equal(await ask(path), 404, path)
  const wide = encodeURIComponent('é'.repeat(searchParams.get('state')?.length ?? 0))
  assert.equal(await ask(`/callback?code=stolen&state=${wide}`), 400)
  assert.match(await browse(data.authorizationUrl ?? ''), /Signed in/)
})

test('two who begin at once share the login, and each hears of its end', async t => {
  const scene = await start(t)
  const [one, two] = [await scene.begin(), await scene.begin()]
  assert.notEqual(one.data.flowId, two.data.flowId)
  assert.equal(one.data.authorizationUrl, two.data.authorizationUrl)
  await browse(two.data.authorizationUrl ?? '')
  assert.deepEqual([(await scene.complete(one.data.flowId)).code, (await scene.complete(two.data.flowId)).code], [0, 0])
})

test('of more than a hundred who began one login the earliest has to begin again', async t => {
  const scene = await start(t)
  const ids: (string | undefined)[] = []
  for (let count = 0; count < 101; count++) ids.push((await scene.begin()).data.flowId)
  assert.equal((await scene.complete(ids[0])).code, 40001)
  const [second, last] = [scene.complete(ids[1]), scene.complete(ids[100])]
  await browse((await scene.begin()).data.authorizationUrl ?? '')
  assert.deepEqual([(await second).code, (await last).code], [0, 0])
})

test('a wait that ends by its time gives the login up, for whoever waited', async t => {
  const scene = await start(t)
  const [one, two] = [(await scene.begin()).data, (await scene.begin()).data]
  assert.equal((await scene.complete(one.flowId, 10)).code, 40929)
  assert.equal((await scene.complete(one.flowId)).code, 40001)
  await browse(two.authorizationUrl ?? '')
  assert.equal((await scene.complete(two.flowId)).code, 0, 'another one who began it goes on')
})

test('a wait for a login ends with the server, and its client is told', async t => {
  const come = latch()
  const door = definePack({
    name: 'door',
    setup(ctx) {
      ctx.tap(ctx.hooks.beforeRequest, (_, { path }) => {
        if (path === completeAuth.path) come.open()
        return undefined
      })
    }
  })
  const scene = await start(t, {}, { packs: [door] })
  const { data } = await scene.begin()
  const waiting = scene.complete(data.flowId)
  await come.opened
  await scene.state() // whose answer comes after the other request was read
  const [{ code, msg }] = await Promise.all([waiting, scene.kernel.stop()])
  assert.deepEqual([code, msg], [40929, 'the server stops'])
})

test('a login that is cancelled, idle or not finished in time is gone', async t => {
  const scene = await start(t, { flow_idle_ms: 200 })
  const { data } = await scene.begin()
  assert.equal((await scene.rest.json('POST', '/api/v2/mcp/auth:complete', { flowId: data.flowId, timeoutMs: 0 })).code, 40001)
  for (const flowId of [data.flowId ?? '', 'flow_none']) {
    assert.deepEqual((await scene.call(cancelAuth, { body: { flowId } })).data, null)
  }
  const unknown = await scene.complete(data.flowId)
  assert.deepEqual([unknown.code, /where it began/.test(unknown.msg)], [40001, true])
  const callback = new URL(data.authorizationUrl ?? '').searchParams.get('redirect_uri') ?? ''
  await assert.rejects(fetch(callback), 'the callback is closed')
  const idle = await scene.begin()
  assert.equal((await scene.complete(idle.data.flowId)).code, 40929, 'nobody came within the idle time')
})

test('a server without a login of its own cannot begin one', async t => {
  const scene = await start(t)
  for (const name of ['local', 'header', 'bearer']) assert.equal((await scene.begin(name)).code, 40001, name)
  assert.equal((await scene.begin('none')).code, 40408)
})

test('a reset forgets the login, and sessions lose the tools', async t => {
  const scene = await start(t)
  await signIn(scene)
  assert.equal((await scene.run(['mcp__site__echo', { text: 'a' }]))[0]?.isError, false)
  const reset = (name: string) => scene.call(resetAuth, { body: { source: 'global', name } })
  assert.deepEqual((await reset('site')).data, null)
  await scene.waitFor(
    ({ type, payload }) =>
      type === 'mcp.server.status' && (payload as { server: { name: string; status: string } }).server.status === 'needs-auth'
  )
  assert.equal((await scene.run(['mcp__site__echo', { text: 'a' }]))[0]?.isError, true)
  assert.deepEqual([(await reset('site')).code, (await reset('local')).code, (await reset('none')).code], [0, 40001, 40408])
})

test('the model can begin the login itself, and the user gets the address', async t => {
  const scene = await start(t)
  const turn = scene.run(['mcp__site__authenticate'])
  const { payload } = await scene.waitFor(({ type }) => type === 'tool.progress')
  const { update } = payload as { update: { customKind: string; customData: { serverName: string; authorizationUrl: string } } }
  assert.deepEqual([update.customKind, update.customData.serverName], ['mcp_oauth', 'site'])
  await browse(update.customData.authorizationUrl)
  const [result] = await turn
  assert.match(String(result?.output), /Signed in at site/)
  assert.equal((await scene.run(['mcp__site__echo', { text: 'x' }]))[0]?.output, 'guarded says x')
})

test('a login that is given up while its code is exchanged is not kept', async t => {
  const site = await guarded(t)
  const kept: string[] = []
  const locked = (_entry: Entry, work: () => Promise<unknown>) => work()
  const book = { accessToken: async () => undefined, locked, write: async () => kept.push('login') } as unknown as CredentialBook
  const entry = { name: 'site', source: 'user', config: { transport: 'http', url: site.url } } as unknown as Entry
  const cancelled = latch()
  const flows = new Flows({
    book,
    fetch,
    idleMs: 900_000,
    newId: () => '1',
    async isThere() {
      flows.cancel('flow_1')
      cancelled.open()
      return true
    },
    authorized: () => kept.push('told')
  })
  const begun = await flows.begin(entry)
  assert.ok(begun.status === 'authorization-required')
  const browsed = browse(begun.authorizationUrl).catch(() => undefined) // its page ends with the login
  await cancelled.opened
  await browsed
  assert.deepEqual(kept, [])
})

test('of a login that is over nothing is kept once its end was told, or it was given up, or it did not begin', async t => {
  const site = await guarded(t)
  const book = { accessToken: async () => undefined } as unknown as CredentialBook
  const ports = { book, fetch, idleMs: 900_000, isThere: async () => false, authorized: () => {} }
  let made = 0
  const flows = new Flows({ ...ports, newId: () => `${made++}` })
  const over = async (url: string, end: (flowId: string, authorizationUrl: string) => unknown) => {
    const entry = { name: `site-${made}`, source: 'user', config: { transport: 'http', url } } as unknown as Entry
    const begun = await flows.begin(entry).catch(() => undefined)
    if (begun?.status === 'authorization-required') await end(begun.flowId, begun.authorizationUrl)
    return new WeakRef(entry)
  }
  const told = await over(site.url, async (flowId, authorizationUrl) => {
    assert.match(await browse(authorizationUrl), /The login failed/)
    await assert.rejects(flows.complete(flowId, 60_000, new AbortController().signal), /removed meanwhile/)
  })
  const givenUp = await over(site.url, flowId => flows.cancel(flowId))
  const neverBegun = await over('http://127.0.0.1:1/', () => assert.fail('nobody is there'))
  assert.equal(await keptOf([told, givenUp, neverBegun]), 0)
})
