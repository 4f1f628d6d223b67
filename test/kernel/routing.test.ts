import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnyRoute } from '../../kernel/contract.ts'
import { defineRoute } from '../../kernel/contract.ts'
import { assertRoute, routeKey } from '../../kernel/http/router.ts'
import { Type } from '../../kernel/shapes.ts'
import { type Bound, startHttp } from './http-fixture.ts'

const named = (path: string) => [...path.matchAll(/\{\+?(\w+)\}/g)].map(match => match[1]!)

/** A route that answers its own name and params. */
function answering(method: AnyRoute['method'], path: string, more: Partial<AnyRoute> = {}): Bound {
  const names = named(path)
  const params = names.length > 0 ? Type.Object(Object.fromEntries(names.map(name => [name, Type.String()]))) : undefined
  const spec = { ...defineRoute({ method, path, summary: path, params, data: Type.Unknown() }), ...more } as AnyRoute
  return [spec, ({ params: values }) => ({ route: path, params: values })]
}

test('the most specific route answers, whatever the order of registration', async t => {
  const routes = [
    answering('GET', '/api/v1/files/{+path}'),
    answering('GET', '/api/v1/files/{id}'),
    answering('GET', '/api/v1/files/list'),
    answering('GET', '/api/v1/files/{id}/meta'),
    answering('GET', '/api/v1/files/list/{name}')
  ]
  const wanted: Record<string, string> = {
    '/api/v1/files/list': '/api/v1/files/list',
    '/api/v1/files/abc': '/api/v1/files/{id}',
    '/api/v1/files/abc/meta': '/api/v1/files/{id}/meta',
    '/api/v1/files/list/meta': '/api/v1/files/list/{name}',
    '/api/v1/files/a/b/c': '/api/v1/files/{+path}'
  }
  const http = await startHttp(t)
  for (const order of [routes, routes.toReversed()]) {
    http.mount(...order)
    for (const [path, route] of Object.entries(wanted)) {
      const { json } = await http.send('GET', path)
      assert.equal((json.data as { route: string }).route, route, path)
    }
  }
})

test('path values are decoded once', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/names/{name}'), answering('GET', '/api/v1/tree/{+path}'))
  const value = async (path: string) => (await http.send('GET', path)).json.data as { params: Record<string, string> }
  for (const name of ['50%', 'a#b', 'a?b', '"quoted"', '漢字', '.hidden', '%2F', '../up', 'a b', "it's", 'a:b', '..']) {
    assert.equal((await value(`/api/v1/names/${encodeURIComponent(name)}`)).params.name, name)
  }
  assert.equal((await value('/api/v1/names/a%2Fb')).params.name, 'a/b')
  assert.equal((await value('/api/v1/names/%2541')).params.name, '%41')
  assert.equal((await value('/api/v1/tree/a/b%2Fc/%25d')).params.path, 'a/b/c/%d')
  assert.equal((await value('/api/v1/tree/../x')).params.path, '../x')
})

test('path values that cannot be decoded or hold control characters are named', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/names/{name}'))
  for (const bad of ['%zz', '%ff', '%00', 'a%0ab', '%7f']) {
    const { status, json } = await http.send('GET', `/api/v1/names/${bad}`)
    assert.equal(status, 200)
    assert.equal(json.code, 40001)
    assert.equal(json.details?.[0]?.path, 'params.name')
  }
})

test('the rest of a path may have every character but a null character', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/tree/{+path}'), answering('GET', '/api/v1/in/{name}/{+path}:download'))
  const path = async (url: string) => ((await http.send('GET', url)).json.data as { params: { path: string } }).params.path
  assert.equal(await path('/api/v1/tree/a%0ab/%09c%7f'), 'a\nb/\tc\x7f')
  assert.equal(await path('/api/v1/in/x/a%0ab:download'), 'a\nb')
  for (const bad of ['tree/a%00b', 'in/x%0a/a:download']) assert.equal((await http.send('GET', `/api/v1/${bad}`)).json.code, 40001, bad)
})

test('an action tail is split at the last colon of the decoded segment', async t => {
  const http = await startHttp(t)
  http.mount(
    answering('POST', '/api/v1/models/{model_id}:set_default'),
    answering('POST', '/api/v1/models/{model_id}:refresh'),
    answering('GET', '/api/v1/fs/{+path}:download')
  )
  const ok = async (method: string, path: string) => (await http.send(method, path)).json.data
  assert.deepEqual(await ok('POST', '/api/v1/models/p%2Fm:set_default'), {
    route: '/api/v1/models/{model_id}:set_default',
    params: { model_id: 'p/m' }
  })
  assert.deepEqual(await ok('POST', '/api/v1/models/a:b%3Arefresh'), {
    route: '/api/v1/models/{model_id}:refresh',
    params: { model_id: 'a:b' }
  })
  assert.deepEqual(await ok('GET', '/api/v1/fs/src/a:b.txt:download'), {
    route: '/api/v1/fs/{+path}:download',
    params: { path: 'src/a:b.txt' }
  })
})

test('a missing or unknown action is a validation failure', async t => {
  const http = await startHttp(t)
  http.mount(answering('POST', '/api/v1/sessions/{session_id}:fork'), answering('GET', '/api/v1/fs/{+path}:download'))
  for (const tail of ['s1', 's1:', ':fork', 's1:zap', 's1%3Azap']) {
    const { status, json } = await http.send('POST', `/api/v1/sessions/${tail}`)
    const message = `unsupported action: ${decodeURIComponent(tail)}`
    assert.deepEqual([status, json.code, json.msg, json.details], [200, 40001, message, [{ path: 'session_id', message }]])
  }
  assert.equal((await http.send('GET', '/api/v1/fs/a/b')).json.code, 40001)
  assert.equal((await http.send('GET', '/api/v1/fs/:download')).json.code, 40001)
})

test('a bare route beside actions takes the tails without a colon', async t => {
  const http = await startHttp(t)
  http.mount(answering('POST', '/api/v1/questions/{question_id}:dismiss'), answering('POST', '/api/v1/questions/{question_id}'))
  const post = async (tail: string) => (await http.send('POST', `/api/v1/questions/${tail}`)).json
  assert.equal(((await post('q1')).data as { route: string }).route, '/api/v1/questions/{question_id}')
  assert.equal(((await post('q1:dismiss')).data as { route: string }).route, '/api/v1/questions/{question_id}:dismiss')
  assert.equal((await post('q1:zap')).code, 40001)
})

test('a bare route without actions beside it takes colons too', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/models/{model_id}'))
  assert.deepEqual((await http.send('GET', '/api/v1/models/a:b')).json.data, {
    route: '/api/v1/models/{model_id}',
    params: { model_id: 'a:b' }
  })
})

test('literal colons are literal, and their unknown neighbours are unsupported actions', async t => {
  const http = await startHttp(t)
  http.mount(answering('POST', '/api/v1/providers:refresh'), answering('POST', '/api/v1/sessions/{session_id}/fs:list'))
  assert.equal((await http.send('POST', '/api/v1/providers:refresh')).json.code, 0)
  assert.equal((await http.send('POST', '/api/v1/providers%3Arefresh')).status, 404)
  const zap = await http.send('POST', '/api/v1/providers:zap')
  assert.deepEqual([zap.status, zap.json.code, zap.json.msg], [200, 40001, 'unsupported action: providers:zap'])
  assert.equal((await http.send('POST', '/api/v1/sessions/s1/fs:zap')).json.code, 40001)
  for (const tail of ['zap:refresh', 'refresh:refresh', ':refresh', 'zap%3Arefresh']) {
    const { status, json } = await http.send('POST', `/api/v1/providers:${tail}`)
    assert.deepEqual([status, json.code, json.msg], [200, 40001, `unsupported action: providers:${decodeURIComponent(tail)}`])
  }
  assert.equal((await http.send('GET', '/api/v1/providers:refresh')).status, 404)
  assert.equal((await http.send('POST', '/api/v1/providers:zap', { token: null })).status, 401)
})

test('unknown paths and methods answer HTTP 404 with an envelope', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/meta'))
  for (const [method, path] of [
    ['GET', '/api/v1/nope'],
    ['POST', '/api/v1/meta'],
    ['PROPFIND', '/api/v1/meta'],
    ['GET', '/api/v1/meta/'],
    ['GET', '/API/v1/meta'],
    ['GET', '//api/v1/meta'],
    ['GET', '/']
  ] as const) {
    const { status, json } = await http.send(method, path)
    assert.deepEqual([status, json.code, json.msg, json.data], [404, 40400, `no such route: ${method} ${path}`, null], path)
  }
})

test('HEAD is answered on GET routes without a body and with the same headers', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/meta'))
  const id = { 'x-request-id': '0'.repeat(26) }
  const get = await http.send('GET', '/api/v1/meta', { headers: id })
  const head = await http.send('HEAD', '/api/v1/meta', { headers: id })
  assert.equal(head.text, '')
  assert.equal(head.status, 200)
  assert.equal(head.headers['content-length'], get.headers['content-length'])
})

test('encoded unreserved characters of a path are decoded before matching, nothing else is', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/meta'))
  assert.equal((await http.send('GET', '/%61pi/v1/%6Deta')).json.code, 0)
  assert.equal((await http.send('GET', '/%61pi/v1/meta', { token: null })).status, 401)
  assert.equal((await http.send('GET', '/api%2Fv1/meta')).status, 404)
})

test('a request on an old generation finishes while a new one is mounted', async t => {
  const http = await startHttp(t)
  let go = () => {}
  let entered = () => {}
  const waiting = new Promise<void>(resolve => {
    entered = resolve
  })
  const [spec] = answering('GET', '/api/v1/slow')
  http.mount([
    spec,
    async () => {
      entered()
      await new Promise<void>(resolve => {
        go = resolve
      })
      return 'old'
    }
  ])
  const slow = http.send('GET', '/api/v1/slow')
  await waiting
  http.mount([spec, () => 'new'])
  assert.equal((await http.send('GET', '/api/v1/slow')).json.data, 'new')
  go()
  assert.equal((await slow).json.data, 'old')
  http.mount()
  assert.equal((await http.send('GET', '/api/v1/slow')).status, 404)
})

test('a route of a pack that takes no more work answers as if it were unknown', async t => {
  const http = await startHttp(t)
  http.mount(answering('GET', '/api/v1/meta'))
  await http.activity.drain(0)
  const { status, json } = await http.send('GET', '/api/v1/meta')
  assert.deepEqual([status, json.code], [404, 40400])
})

test('routes clash by method, shape and action, not by the names of their parameters', () => {
  const key = (method: AnyRoute['method'], path: string) => routeKey(defineRoute({ method, path, summary: '', data: Type.Null() }))
  assert.equal(key('GET', '/a/{x}'), key('GET', '/a/{y}'))
  assert.equal(key('POST', '/a/{x}:go'), key('POST', '/a/{y}:go'))
  const different = [
    key('GET', '/a/{x}'),
    key('POST', '/a/{x}'),
    key('POST', '/a/{x}:go'),
    key('POST', '/a/{x}:stop'),
    key('POST', '/a/{+x}:go'),
    key('POST', '/a:go')
  ]
  assert.equal(new Set(different).size, different.length)
})

test('declarations that could never work are refused with the reason', () => {
  const base = { method: 'GET', path: '/api/v1/x', summary: '', data: Type.Null() } as const
  const refuse = (more: Partial<AnyRoute>, reason: RegExp) => assert.throws(() => assertRoute({ ...base, ...more }), reason)
  refuse({ path: 'api' }, /must begin with/)
  refuse({ path: '/api/' }, /trailing slash/)
  refuse({ path: '/a/{x}.json' }, /neither literal/)
  refuse({ path: '/a/{x}:go/b' }, /only possible in the last segment/)
  refuse({ path: '/a/{+x}/b' }, /only possible in the last segment/)
  refuse({ path: '/{x}/{x}' }, /twice/)
  refuse({ path: '/a/{x}', params: Type.Object({}) }, /lacks x/)
  refuse({ params: Type.Object({ y: Type.String() }) }, /no parameter y/)
  refuse({ data: Type.Object({ at: Type.Array(Type.String({ format: 'lunar' })) }) }, /unregistered format 'lunar'/)
  refuse({ body: Type.Object({ kind: Type.Unsafe({ enum: ['a'] }) }) }, /Type\.Unsafe/)
  assertRoute({ ...base, data: Type.Object({ format: Type.String(), at: Type.String({ format: 'date-time' }) }) })
})
