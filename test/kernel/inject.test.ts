/** Routes asked from inside the process, and hooks around every request. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { AppError, binary, definePack, defineRoute, errorSpec, KernelInfo, Relays, type RequestInfo, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const TooMany = errorSpec('too_many', 40977, 'too many')
const Thing = Type.Object({ id: Type.String(), label: Type.String() })
const addThing = defineRoute({
  method: 'POST',
  path: '/api/v1/things/{id}',
  summary: 'x',
  params: Type.Object({ id: Type.String() }),
  query: Type.Object({ count: Type.Optional(Type.Integer({ maximum: 3 })), tag: Type.Optional(Type.Array(Type.String())) }),
  body: Type.Object({ label: Type.String({ minLength: 1 }), seen: Type.Optional(Type.Unknown()) }),
  data: Type.Object({ thing: Thing, count: Type.Optional(Type.Integer()), tag: Type.Optional(Type.Array(Type.String())) }),
  errors: [TooMany]
})
const whoAmI = defineRoute({ method: 'GET', path: '/api/v1/who', summary: 'x', scope: 'who', data: Type.Unknown() })
const download = defineRoute({ method: 'GET', path: '/api/v1/file', summary: 'x', data: Type.Null(), binary: { types: ['text/plain'] } })
const upload = defineRoute({ method: 'POST', path: '/api/v1/file', summary: 'x', bodyType: 'stream', bodyLimit: 10, data: Type.Integer() })
const wait = defineRoute({ method: 'GET', path: '/api/v1/wait', summary: 'x', data: Type.Unknown() })
const drop = defineRoute({ method: 'DELETE', path: '/api/v1/things', summary: 'x', status: 204, data: Type.Null() })

async function start(t: TestContext) {
  const bodies: object[] = []
  const requests: RequestInfo[] = []
  let entered: () => void = () => undefined
  const waiting = new Promise<void>(resolve => {
    entered = resolve
  })
  const pack = definePack({
    name: 'things',
    setup(ctx) {
      ctx.route(addThing, ({ params, query, body, request }) => {
        if (params.id === 'last') throw new AppError(TooMany)
        if (params.id === 'bug') throw new Error('secret detail')
        bodies.push(body)
        requests.push(request)
        return { thing: { id: params.id, label: body.label }, ...query }
      })
      ctx.route(whoAmI, ({ request }) => request.principal)
      ctx.route(download, () => binary({ stream: Readable.from(['some ', 'bytes']), type: 'text/plain' }))
      ctx.route(upload, async ({ request }) => (await buffer(request.stream)).length)
      ctx.route(drop, () => null)
      ctx.route(
        wait,
        ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
            entered()
          })
      )
    }
  })
  return { ...(await startTestKernel(t, { packs: [pack] })), bodies, requests, waiting }
}

test('a route answers in process as it does over HTTP', async t => {
  const { kernel, call } = await start(t)
  const input = { params: { id: 'a b/c' }, query: { count: 2, tag: ['x', 'y'] }, body: { label: 'one' } }
  const { request_id: _, ...inside } = await kernel.inject(addThing, input)
  const { request_id: __, ...outside } = await call(addThing, input)
  assert.deepEqual(inside, outside)
  assert.deepEqual(inside.data, { thing: { id: 'a b/c', label: 'one' }, count: 2, tag: ['x', 'y'] })
  assert.deepEqual((await kernel.inject(drop)).status, 204)
  const half = await kernel.inject(addThing, { ...input, query: { tag: ['a b&c', '\ud83d'] } })
  assert.deepEqual(half.data, { thing: { id: 'a b/c', label: 'one' }, tag: ['a b&c', '\ufffd'] })
})

test('an injected request is checked like any other', async t => {
  const { kernel, call } = await start(t)
  const wrong = [
    { params: { id: 'a' }, query: { count: 9 }, body: { label: 'x' } },
    { params: { id: 'a' }, body: { label: '' } },
    { params: { id: 'last' }, body: { label: 'x' } }
  ]
  for (const input of wrong) {
    const { request_id: _, ...inside } = await kernel.inject(addThing, input)
    const { request_id: __, ...outside } = await call(addThing, input)
    assert.deepEqual(inside, outside)
    assert.notEqual(inside.code, 0)
  }
  const bug = await kernel.inject(addThing, { params: { id: 'bug' }, body: { label: 'x' } })
  assert.deepEqual([bug.code, bug.msg, bug.data], [50001, 'internal error', null])
  await kernel.unload('things')
  assert.deepEqual((await kernel.inject(drop)).code, 40400)
})

test('an injected request is this process, or whom it says, within its scopes', async t => {
  const { kernel } = await start(t)
  assert.deepEqual((await kernel.inject(whoAmI)).data, { id: 'in-process', kind: 'in-process', scopes: 'all' })
  const principal = { id: 'bridge', kind: 'token', scopes: ['who'] } as const
  assert.deepEqual((await kernel.inject(whoAmI, { principal })).data, principal)
  const { code, status } = await kernel.inject(drop, { principal })
  assert.deepEqual([code, status], [40302, 403])
})

test('caller and handler share no object', async t => {
  const { kernel, bodies, requests } = await start(t)
  const seen = { deep: [1] }
  await kernel.inject(addThing, { params: { id: 'a' }, body: { label: 'x', seen }, headers: { 'x-from': 'bridge' } })
  seen.deep.push(2)
  assert.deepEqual(bodies, [{ label: 'x', seen: { deep: [1] } }])
  assert.deepEqual([requests[0]?.url, requests[0]?.headers['x-from'], requests[0]?.remote_address], ['/api/v1/things/a', 'bridge', null])
})

test('bytes go both ways without a socket, within their limit', async t => {
  const { kernel } = await start(t)
  const { bytes, data } = await kernel.inject(download)
  assert.ok(bytes && 'stream' in bytes && data === null)
  assert.equal(String(await buffer(bytes.stream)), 'some bytes')
  assert.equal((await kernel.inject(upload, { stream: Readable.from([Buffer.alloc(10)]) })).data, 10)
  assert.equal((await kernel.inject(upload, { stream: Readable.from([Buffer.alloc(6), Buffer.alloc(6)]) })).code, 40001)
})

test('a caller that goes away ends the handler', async t => {
  const { kernel, waiting } = await start(t)
  const abort = new AbortController()
  const asked = kernel.inject(wait, { signal: abort.signal })
  await waiting
  abort.abort(new Error('enough'))
  await assert.rejects(asked, /enough/)
})

test('a pack asks routes of others through the kernel information', async t => {
  const asking = defineRoute({ method: 'GET', path: '/api/v1/asking', summary: 'x', data: Type.Unknown() })
  const bridge = definePack({
    name: 'bridge',
    needs: { kernel: KernelInfo },
    setup: (ctx, { kernel }) => ctx.route(asking, async () => (await kernel.inject(whoAmI)).data)
  })
  const pack = definePack({ name: 'who', setup: ctx => void ctx.route(whoAmI, ({ request }) => request.principal.kind) })
  const { call } = await startTestKernel(t, { packs: [bridge, pack] })
  assert.equal((await call(asking)).data, 'in-process')
})

test('a tap before a request answers, refuses or lets it go on; one after it hears how it ended', async t => {
  const heard: unknown[] = []
  const Refused = errorSpec('refused', 40978, 'refused here', 403)
  const watch = definePack({
    name: 'watch',
    setup(ctx) {
      ctx.tap(ctx.hooks.beforeRequest, (request, route) => {
        if (request.headers['x-do'] === 'refuse') throw new AppError(Refused)
        if (request.headers['x-do'] === 'answer') return { data: route.path }
        return undefined
      })
      ctx.tap(ctx.hooks.afterRequest, (request, { route, status, code, duration_ms }) => {
        assert.ok(duration_ms >= 0)
        heard.push([request.method, request.principal.kind, route?.path, status, code])
      })
    }
  })
  const plain = defineRoute({ method: 'GET', path: '/api/v1/plain', summary: 'x', data: Type.String(), errors: [Refused] })
  const pack = definePack({ name: 'plain', setup: ctx => void ctx.route(plain, () => 'handled') })
  const { call, kernel, rest } = await startTestKernel(t, { packs: [watch, pack] })

  assert.equal((await call(plain)).data, 'handled')
  assert.equal((await call(plain, { headers: { 'x-do': 'answer' } })).data, '/api/v1/plain')
  assert.deepEqual((await call(plain, { headers: { 'x-do': 'refuse' } })).status, 403)
  assert.equal((await kernel.inject(plain, { headers: { 'x-do': 'answer' } })).data, '/api/v1/plain')
  await rest.raw('GET', '/api/v1/nope')
  await rest.raw('GET', '/api/v1/plain', { token: null })
  assert.deepEqual(heard, [
    ['GET', 'token', '/api/v1/plain', 200, 0],
    ['GET', 'token', '/api/v1/plain', 200, 0],
    ['GET', 'token', '/api/v1/plain', 403, 40978],
    ['GET', 'in-process', '/api/v1/plain', 200, 0],
    ['GET', 'token', undefined, 404, 40400],
    ['GET', 'anonymous', '/api/v1/plain', 401, 40101]
  ])
})

test('a tap before a request that fails is put down to its pack and ends the request as a bug', async t => {
  const watch = definePack({
    name: 'watch',
    setup: ctx => {
      ctx.tap(ctx.hooks.beforeRequest, () => {
        throw new Error('broken tap')
      })
    }
  })
  const pack = definePack({ name: 'who', setup: ctx => void ctx.route(whoAmI, () => 1) })
  const { call, kernel } = await startTestKernel(t, { packs: [watch, pack] })
  assert.equal((await call(whoAmI)).code, 50001)
  const faults = Object.fromEntries(kernel.features().map(({ name, meta }) => [name, meta.faults?.count]))
  assert.deepEqual(faults, { watch: 1, who: undefined })
})

test('what is asked from inside about a session that another server has is answered there, with an envelope or with bytes', async t => {
  const params = Type.Object({ session_id: Type.String() })
  const path = '/api/v1/sessions/{session_id}/notes'
  const note = defineRoute({ method: 'POST', path, summary: 'x', params, body: Type.Object({ text: Type.String() }), data: Type.String() })
  const read = defineRoute({ method: 'GET', path, summary: 'x', params, data: Type.Null(), binary: { types: ['text/plain'] } })
  const asked: unknown[] = []
  const there = async ({ method, url, headers, principal }: Omit<RequestInfo, 'stream'>, body: Readable | Buffer | undefined) => {
    asked.push([method, url, headers['content-type'], principal.kind, body instanceof Buffer ? String(body) : undefined])
    if (method === 'GET') return { status: 200, headers: { 'content-type': 'text/plain', 'x-lines': 1 }, body: Readable.from(['far']) }
    const envelope = JSON.stringify({ code: 0, msg: 'success', data: 'there', request_id: 'r' })
    return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: Readable.from([Buffer.from(envelope)]) }
  }
  const others = definePack({
    name: 'others',
    needs: { relays: Relays },
    setup: (ctx, { relays }) => {
      const way = async (session_id: string) => (session_id === 'far' ? { relay: there } : undefined)
      relays.setElsewhere({ others: true, way, remote: () => assert.fail('nobody connects') })
      ctx.own(() => relays.setElsewhere(undefined))
      ctx.route(note, () => 'here')
      ctx.route(read, () => null)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [others] })
  const body = { text: 'hello' }

  assert.equal((await kernel.inject(note, { params: { session_id: 'near' }, body })).data, 'here')
  assert.equal((await kernel.inject(note, { params: { session_id: 'far' }, body })).data, 'there')
  const { bytes, status } = await kernel.inject(read, { params: { session_id: 'far' } })

  assert.ok(bytes && 'stream' in bytes)
  assert.deepEqual([status, bytes.type, bytes.headers], [200, 'text/plain', { 'x-lines': '1' }])
  assert.equal(String(await buffer(bytes.stream)), 'far')
  assert.deepEqual(asked, [
    ['POST', '/api/v1/sessions/far/notes', 'application/json', 'in-process', '{"text":"hello"}'],
    ['GET', '/api/v1/sessions/far/notes', undefined, 'in-process', undefined]
  ])
})
