import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { type AnyRoute, defineRoute } from '../../kernel/contract.ts'
import { AppError, errorSpec, invalid, PersistenceFailed } from '../../kernel/errors.ts'
import { Type } from '../../kernel/shapes.ts'
import { type Fixture, startHttp } from './http-fixture.ts'

const json = { 'content-type': 'application/json' }
const Label = Type.Object({ label: Type.String({ minLength: 1 }) })
const post = defineRoute({ method: 'POST', path: '/api/v1/things', summary: 'x', body: Label, data: Type.Unknown() })
const get = defineRoute({ method: 'GET', path: '/api/v1/things', summary: 'x', data: Type.Unknown() })
const Gone = errorSpec('gone', 40477, 'gone')
const echo = ({ body }: { body: unknown }) => ({ body: body === undefined ? 'none' : body })

test('a success carries code, msg, data and the request id, and drops undefined fields', async t => {
  const http = await startHttp(t)
  http.mount([get, () => ({ a: 1, gone: undefined })])
  const { status, headers, text, json: envelope } = await http.send('GET', '/api/v1/things')
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'application/json; charset=utf-8')
  assert.deepEqual(envelope, { code: 0, msg: 'success', data: { a: 1 }, request_id: envelope.request_id })
  assert.match(envelope.request_id, /^[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.ok(!text.includes('gone'))
})

test('a valid X-Request-Id is echoed unchanged, any other is replaced', async t => {
  const http = await startHttp(t)
  http.mount([get, () => null])
  const idFor = async (value: string | string[]) =>
    (await http.send('GET', '/api/v1/things', { headers: { 'x-request-id': value } })).json.request_id
  for (const good of ['01ARZ3NDEKTSV4RRFFQ69G5FAV', '01arz3ndektsv4rrffq69g5fav', 'z'.repeat(26)]) assert.equal(await idFor(good), good)
  for (const bad of ['', 'abc', '01ARZ3NDEKTSV4RRFFQ69G5FAU'.replace('A', 'I'), '0'.repeat(27)]) assert.notEqual(await idFor(bad), bad)
  assert.equal(await idFor(['0'.repeat(26), '1'.repeat(26)]), '0'.repeat(26))
})

test('status, success code and the empty 204 follow the declaration', async t => {
  const http = await startHttp(t)
  http.mount(
    [{ ...get, path: '/api/v1/a', status: 201 }, () => null],
    [{ ...get, path: '/api/v1/b', successCode: 40909 }, () => ({ dismissed: true })],
    [{ ...get, path: '/api/v1/c', status: 204 }, () => undefined]
  )
  assert.deepEqual([(await http.send('GET', '/api/v1/a')).status, (await http.send('GET', '/api/v1/a')).json.code], [201, 0])
  assert.deepEqual((await http.send('GET', '/api/v1/b')).json.code, 40909)
  const empty = await http.send('GET', '/api/v1/c')
  assert.deepEqual([empty.status, empty.text, empty.headers['content-type']], [204, '', undefined])
})

test('an AppError becomes its envelope, with data, details and HTTP status', async t => {
  const Taken = errorSpec('taken', 49901, 'already taken')
  const Gone = errorSpec('gone', 49902, 'gone', 404)
  const http = await startHttp(t)
  http.mount(
    [
      { ...get, errors: [Taken] },
      () => {
        throw new AppError(Taken, { data: { resolved: false }, details: { current_status: 'done' } })
      }
    ],
    [
      { ...post, body: undefined, errors: [Gone] } as AnyRoute,
      async () => {
        throw new AppError(Gone, { message: 'file f_1 is gone' })
      }
    ]
  )
  const taken = await http.send('GET', '/api/v1/things')
  assert.deepEqual(
    [taken.status, taken.json.code, taken.json.msg, taken.json.data, taken.json.details],
    [200, 49901, 'already taken', { resolved: false }, { current_status: 'done' }]
  )
  const gone = await http.send('POST', '/api/v1/things')
  assert.deepEqual([gone.status, gone.json.msg, gone.json.data, 'details' in gone.json], [404, 'file f_1 is gone', null, false])
  assert.deepEqual(http.violations, [])
})

test('a bug answers 50001 with a fixed text, is logged with its stack, and the server lives on', async t => {
  const http = await startHttp(t)
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  http.mount(
    [get, () => Promise.reject(new Error('secret path /root'))],
    [
      { ...get, path: '/api/v1/sync' },
      () => {
        throw new TypeError('secret')
      }
    ],
    [{ ...get, path: '/api/v1/odd' }, () => Promise.reject('just a text')],
    [{ ...get, path: '/api/v1/cyclic' }, () => cyclic]
  )
  for (const path of ['/api/v1/things', '/api/v1/sync', '/api/v1/odd', '/api/v1/cyclic']) {
    const { status, json: envelope, text } = await http.send('GET', path)
    assert.deepEqual([status, envelope.code, envelope.msg, envelope.data], [200, 50001, 'internal error', null])
    assert.ok(!/secret|stack|\.ts/.test(text))
  }
  assert.ok(http.logs.some(line => line.includes('"stack"') && line.includes('secret path')))
  assert.ok(http.logs.some(line => line.includes('"request failed"') && line.includes('"path":"/api/v1/things"')))
})

test('a persistence failure keeps its code and leaves its cause in the log', async t => {
  const http = await startHttp(t)
  http.mount([get, () => Promise.reject(new AppError(PersistenceFailed, { cause: new Error('ENOSPC') }))])
  assert.equal((await http.send('GET', '/api/v1/things')).json.code, 50003)
  assert.ok(http.logs.some(line => line.includes('ENOSPC')))
})

test('every 40001 has details, also when the handler named no field', async t => {
  const http = await startHttp(t)
  const { ValidationFailed } = await import('../../kernel/errors.ts')
  http.mount([get, () => Promise.reject(new AppError(ValidationFailed, { message: 'bad page token' }))])
  const { json: envelope } = await http.send('GET', '/api/v1/things')
  assert.deepEqual([envelope.msg, envelope.details], ['bad page token', [{ path: '', message: 'bad page token' }]])
})

test('bodies that are not JSON of the right shape answer 40001 and name the body', async t => {
  const http = await startHttp(t)
  http.mount([post, echo])
  const cases: [what: string, headers: Record<string, string>, body: string | Buffer | undefined][] = [
    ['malformed', json, '{"label":'],
    ['wrong type', { 'content-type': 'application/x-www-form-urlencoded' }, 'label=x'],
    ['text', { 'content-type': 'text/plain' }, '{"label":"x"}'],
    ['no type', {}, '{"label":"x"}'],
    ['charset', { 'content-type': 'application/json; charset=latin1' }, '{"label":"x"}'],
    ['compressed', { ...json, 'content-encoding': 'gzip' }, '{"label":"x"}'],
    ['not UTF-8', json, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
    ['missing', {}, undefined],
    ['empty', json, ''],
    ['null', json, 'null'],
    ['array', json, '[]']
  ]
  for (const [what, headers, body] of cases) {
    const answer = await http.send('POST', '/api/v1/things', body === undefined ? { headers } : { headers, body })
    assert.deepEqual([answer.status, answer.json.code, answer.json.data], [200, 40001, null], what)
    assert.equal(answer.json.details?.[0]?.path, 'body', what)
    assert.equal(answer.json.msg, `body: ${answer.json.details?.[0]?.message}`, what)
  }
})

test('a body within the limits is taken, with charset, byte order mark and vendor types', async t => {
  const http = await startHttp(t)
  http.mount([post, echo])
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/merge-patch+json']) {
    const answer = await http.send('POST', '/api/v1/things', { headers: { 'content-type': type }, body: '\ufeff{"label":"ü"}' })
    assert.deepEqual(answer.json.data, { body: { label: 'ü' } }, type)
  }
})

test('an optional body may be missing, with or without a content type', async t => {
  const http = await startHttp(t)
  http.mount([{ ...post, body: Type.Optional(Label) }, echo])
  for (const options of [{}, { headers: json, body: '' }, { headers: { ...json, 'content-length': '0' } }]) {
    assert.deepEqual((await http.send('POST', '/api/v1/things', options)).json.data, { body: 'none' })
  }
  assert.equal((await http.send('POST', '/api/v1/things', { headers: json, body: '{}' })).json.code, 40001)
})

test('a route without a body schema ignores any body', async t => {
  const http = await startHttp(t)
  http.mount([{ ...post, body: undefined }, echo])
  const answer = await http.send('POST', '/api/v1/things', { headers: json, body: '{broken' })
  assert.deepEqual(answer.json.data, { body: 'none' })
})

test('a body that is checked late is checked where the handler reads it: what it throws before wins', async t => {
  const http = await startHttp(t)
  const late = { ...post, bodyCheck: 'late' as const, errors: [Gone] }
  http.mount([
    late,
    input => {
      if (input.request.url.endsWith('?gone')) throw new AppError(Gone)
      return { body: input.body }
    }
  ])
  const send = (path: string, body: string) => http.send('POST', path, { headers: json, body })
  assert.equal((await send('/api/v1/things?gone', '{"label":5}')).json.code, Gone.code)
  const wrong = (await send('/api/v1/things', '{"label":5}')).json
  assert.deepEqual([wrong.code, wrong.details?.[0]?.path], [40001, 'body.label'])
  assert.deepEqual((await send('/api/v1/things', '{"label":"x","more":1}')).json.data, { body: { label: 'x' } })
})

test('a body over the limit answers 40001 and closes the connection, announced or not', async t => {
  const http = await startHttp(t, { bodyLimitBytes: 1000 })
  http.mount([post, echo], [{ ...post, path: '/api/v1/large', bodyLimit: 5_000_000 }, ({ body }) => body.label.length])
  const body = JSON.stringify({ label: 'x'.repeat(3_000_000) })
  for (const headers of [json, { ...json, 'transfer-encoding': 'chunked' }]) {
    const answer = await http.send('POST', '/api/v1/things', { headers, body })
    assert.deepEqual([answer.json.code, answer.json.details?.[0]?.path, answer.headers.connection], [40001, 'body', 'close'])
  }
  assert.equal((await http.send('POST', '/api/v1/large', { headers: json, body })).json.data, 3_000_000)
})

test('unknown keys are stripped, unless the schema forbids them', async t => {
  const http = await startHttp(t)
  const strict = Type.Object({ label: Type.String() }, { additionalProperties: false })
  http.mount([post, echo], [{ ...post, path: '/api/v1/strict', body: strict }, echo])
  const send = (path: string) => http.send('POST', path, { headers: json, body: '{"label":"x","extra":1}' })
  assert.deepEqual((await send('/api/v1/things')).json.data, { body: { label: 'x' } })
  const refused = await send('/api/v1/strict')
  assert.deepEqual([refused.json.code, refused.json.details?.[0]?.path], [40001, 'body.extra'])
})

test('open objects keep their keys, at any depth and in unions', async t => {
  const http = await startHttp(t)
  const open = Type.Object({ a: Type.Optional(Type.Integer()) }, { additionalProperties: true })
  const schema = Type.Object({ list: Type.Array(Type.Union([open, Type.Null()])), closed: Type.Object({ a: Type.Integer() }) })
  http.mount([{ ...post, body: schema }, echo])
  const body = '{"list":[{"a":1,"b":{"c":2}},null],"closed":{"a":1,"b":2,"constructor":3,"toString":4},"valueOf":5}'
  const { json: envelope } = await http.send('POST', '/api/v1/things', { headers: json, body })
  assert.deepEqual(envelope.data, { body: { list: [{ a: 1, b: { c: 2 } }, null], closed: { a: 1 } } })
})

test('a record with any names checks and keeps those with a line break, too', async t => {
  const http = await startHttp(t)
  http.mount([{ ...post, body: Type.Object({ env: Type.Record(Type.String(), Type.String()) }) }, echo])
  const send = async (env: object) => (await http.send('POST', '/api/v1/things', { headers: json, body: JSON.stringify({ env }) })).json
  assert.deepEqual((await send({ 'a\nb': 'x', constructor: 'y' })).data, { body: { env: { 'a\nb': 'x', constructor: 'y' } } })
  assert.deepEqual((await send({ 'a\nb': 5 })).details, [{ path: 'body.env.a\nb', message: 'expected string' }])
  assert.equal((await send([])).details?.[0]?.path, 'body.env')
})

test('a record of records is checked in both', async t => {
  const http = await startHttp(t)
  const text = Type.Record(Type.String(), Type.String())
  const agents = Type.Record(Type.String(), Type.Object({ labels: Type.Optional(text), more: Type.Optional(Type.Array(text)) }))
  http.mount([{ ...post, body: Type.Object({ agents }) }, echo])
  const send = async (given: object) =>
    (await http.send('POST', '/api/v1/things', { headers: json, body: JSON.stringify({ agents: given }) })).json
  const fine = { 'a\nb': { labels: { side: 'x', 'c\nd': 'y' }, more: [{ e: 'z' }] }, other: {} }

  assert.deepEqual((await send(fine)).data, { body: { agents: fine } })
  assert.equal((await send({ a: { labels: { side: 5 } } })).details?.[0]?.path, 'body.agents.a.labels.side')
  assert.equal((await send({ a: { more: [{ e: 5 }] } })).details?.[0]?.path, 'body.agents.a.more.0.e')
})

test('however many entries of a list in a union are wrong, the first ones are named', async t => {
  const http = await startHttp(t)
  const list = (kind: string) => Type.Object({ kind: Type.Literal(kind), list: Type.Array(Type.String()) })
  http.mount([{ ...post, body: Type.Union([list('a'), list('b')]) }, echo])
  const body = JSON.stringify({ kind: 'b', list: Array(200_000).fill(1) })
  const { code, details } = (await http.send('POST', '/api/v1/things', { headers: json, body })).json
  assert.deepEqual([code, details?.length, details?.[0]], [40001, 50, { path: 'body.list.0', message: 'expected string' }])
})

test('a message repeats no more of what was sent than anybody reads', async t => {
  const http = await startHttp(t)
  const message = `no ${'😀'.repeat(50_000)}`
  http.mount(
    [post, () => Promise.reject(new AppError(Gone, { message }))],
    [{ ...post, path: '/api/v1/wrong' }, () => Promise.reject(invalid([{ path: 'body', message }]))]
  )
  const send = async (path: string) => (await http.send('POST', path, { headers: json, body: '{"label":"x"}' })).json
  const { msg } = await send('/api/v1/things')
  assert.deepEqual([msg.length, /\p{Surrogate}/u.test(msg)], [2000, false])
  assert.equal((await send('/api/v1/wrong')).details?.[0]?.message.length, 2000)

  const fields = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}`, Type.String()]))
  http.mount([{ ...post, bodyLimit: 2 ** 20, body: Type.Record(Type.String(), Type.Object(fields)) }, echo])
  const wrong = { ['k'.repeat(500_000)]: Object.fromEntries(Object.keys(fields).map(name => [name, 1])) }
  const answer = (await http.send('POST', '/api/v1/things', { headers: json, body: JSON.stringify(wrong) })).json
  assert.equal(answer.code, 40001)
  assert.ok(JSON.stringify(answer).length < 100_000)
})

test('defaults of the body schema are filled in', async t => {
  const http = await startHttp(t)
  http.mount([{ ...post, body: Type.Object({ size: Type.Integer({ default: 20 }) }) }, echo])
  assert.deepEqual((await http.send('POST', '/api/v1/things', { headers: json, body: '{}' })).json.data, { body: { size: 20 } })
})

test('an object is no list, and a list no object, also where there is a default', async t => {
  const http = await startHttp(t)
  const entry = Type.Object({ tags: Type.Array(Type.String(), { default: [] }), more: Type.Object({}, { default: {} }) })
  http.mount([{ ...post, body: Type.Object({ entries: Type.Array(entry) }) }, echo])
  const send = (one: object) => http.send('POST', '/api/v1/things', { headers: json, body: JSON.stringify({ entries: [one] }) })
  assert.deepEqual((await send({})).json.data, { body: { entries: [{ tags: [], more: {} }] } })
  assert.deepEqual((await send({ tags: { 0: 'x' }, more: ['x'] })).json.details, [
    { path: 'body.entries.0.tags', message: 'expected array' },
    { path: 'body.entries.0.more', message: 'expected object' }
  ])
})

test('__proto__ in a body reaches neither the handler nor any prototype', async t => {
  const http = await startHttp(t)
  const seen: Record<string, unknown>[] = []
  const open = Type.Object({ label: Type.String(), meta: Type.Record(Type.String(), Type.Unknown()) })
  http.mount([{ ...post, body: open }, ({ body }) => seen.push({ ...body.meta }, Object.assign({}, body, body.meta))])
  const body = '{"label":"x","__proto__":{"polluted":1},"meta":{"__proto__":{"polluted":1},"\\u005f_proto__":{"polluted":1},"a":1}}'
  assert.equal((await http.send('POST', '/api/v1/things', { headers: json, body })).json.code, 0)
  for (const value of [...seen, {}]) assert.equal((value as { polluted?: number }).polluted, undefined)
  assert.equal(seen[0]?.a, 1)
})

test('params, body and query are checked in this order, each reported alone', async t => {
  const http = await startHttp(t)
  const spec = defineRoute({
    method: 'POST',
    path: '/api/v1/lists/{n}',
    summary: 'x',
    params: Type.Object({ n: Type.Integer() }),
    body: Label,
    query: Type.Object({ page_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })) }),
    data: Type.Unknown()
  })
  http.mount([spec, input => [input.params.n, input.query.page_size]])
  const paths = async (path: string, body: string) => {
    const { json: envelope } = await http.send('POST', path, { headers: json, body })
    return envelope.details?.map(detail => detail.path) ?? envelope.data
  }
  assert.deepEqual(await paths('/api/v1/lists/x?page_size=0', '{}'), ['params.n'])
  assert.deepEqual(await paths('/api/v1/lists/1?page_size=0', '{}'), ['body.label'])
  assert.deepEqual(await paths('/api/v1/lists/1?page_size=0', '{"label":"x"}'), ['query.page_size'])
  assert.deepEqual(await paths('/api/v1/lists/1?page_size=7', '{"label":"x"}'), [1, 7])
})

test('integers of a query are strict decimals', async t => {
  const http = await startHttp(t)
  const query = Type.Object({ page_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })), busy: Type.Optional(Type.Boolean()) })
  http.mount([{ ...get, query }, input => input.query])
  const ask = async (search: string) => (await http.send('GET', `/api/v1/things?${search}`)).json
  for (const bad of ['page_size=7.5', 'page_size=', 'page_size=1e2', 'page_size=0', 'page_size=101', 'page_size=abc', 'busy=maybe']) {
    assert.equal((await ask(bad)).code, 40001, bad)
  }
  assert.deepEqual((await ask('page_size=7&busy=1&unknown=x')).data, { page_size: 7, busy: true })
})

test('in strict mode a reply that misses its schema and an undeclared error are reported', async t => {
  const Taken = errorSpec('taken', 49901, 'already taken')
  const http = await startHttp(t)
  http.mount(
    [{ ...get, data: Type.Object({ n: Type.Integer() }) }, () => ({ n: 'x' })],
    [{ ...get, path: '/api/v1/b' }, () => Promise.reject(new AppError(Taken))]
  )
  assert.equal((await http.send('GET', '/api/v1/things')).json.code, 0)
  assert.equal((await http.send('GET', '/api/v1/b')).json.code, 49901)
  assert.equal(http.violations.length, 2)
  assert.match(http.violations[0]!, /GET \/api\/v1\/things misses its schema: data\.n/)
  assert.match(http.violations[1]!, /GET \/api\/v1\/b answered taken \(49901\), which it does not declare/)
})

test('the signal aborts when the client goes away, and the work is counted out', async t => {
  const http = await startHttp(t)
  let aborted: (value: unknown) => void = () => {}
  const reason = new Promise(resolve => {
    aborted = resolve
  })
  let entered = () => {}
  const running = new Promise<void>(resolve => {
    entered = resolve
  })
  http.mount([
    get,
    ({ signal }: { signal: AbortSignal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          aborted(signal.reason)
          reject(signal.reason)
        })
        entered()
      })
  ])
  const socket = connect(http.port, '127.0.0.1')
  socket.write(`GET /api/v1/things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${http.token}\r\n\r\n`)
  await running
  assert.equal(http.activity.running, 1)
  socket.destroy()
  assert.ok((await reason) instanceof Error)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(http.activity.running, 0)
  assert.equal(http.logs.length, 0)
})

test('the signal aborts when the pack is unloaded, and stays quiet after a complete reply', async t => {
  const http = await startHttp(t)
  const signals: AbortSignal[] = []
  let entered = () => {}
  const running = new Promise<void>(resolve => {
    entered = resolve
  })
  http.mount(
    [get, ({ signal }: { signal: AbortSignal }) => signals.push(signal)],
    [
      { ...get, path: '/api/v1/long' },
      ({ signal }: { signal: AbortSignal }) =>
        new Promise(resolve => {
          signal.addEventListener('abort', () => resolve('stopped early'))
          entered()
        })
    ]
  )
  await http.send('GET', '/api/v1/things')
  const long = http.send('GET', '/api/v1/long')
  await running
  assert.equal(await http.activity.drain(0), 1)
  assert.equal((await long).json.data, 'stopped early')
  assert.equal(signals[0]?.aborted, false)
})

test('a handler that gives up because its pack is unloaded answers like an unknown route', async t => {
  const http = await startHttp(t)
  let entered = () => {}
  const running = new Promise<void>(resolve => {
    entered = resolve
  })
  http.mount([
    get,
    ({ signal }: { signal: AbortSignal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        entered()
      })
  ])
  const answer = http.send('GET', '/api/v1/things')
  await running
  await http.activity.drain(0)
  assert.deepEqual([(await answer).status, (await answer).json.code, http.logs.length], [404, 40400, 0])
})

test('an upload route gets the body as a stream', async t => {
  const http = await startHttp(t)
  const spec = defineRoute({ method: 'POST', path: '/api/v1/files', summary: 'x', bodyType: 'stream', data: Type.Unknown() })
  http.mount([
    spec,
    async ({ request: { stream } }) => {
      let size = 0
      for await (const chunk of stream) size += chunk.length
      return size
    }
  ])
  assert.equal((await http.send('POST', '/api/v1/files', { body: Buffer.alloc(3_000_000) })).json.data, 3_000_000)
})

test('a reply to an upload that nobody reads reaches the client', async t => {
  const http = await startHttp(t)
  const spec = defineRoute({ method: 'POST', path: '/api/v1/files', summary: 'x', bodyType: 'stream', data: Type.Unknown() })
  http.mount([spec, () => 'not interested'])
  const answer = await http.send('POST', '/api/v1/files', { body: Buffer.alloc(5_000_000) })
  assert.deepEqual([answer.json.data, answer.headers.connection], ['not interested', 'close'])
})

/** Sends a body as browsers do, who read the answer behind all of it; resolves to the answer, or to why the body could not be sent. */
async function sentWhole({ port }: Fixture, token: string, megabytes: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const lines = [
    'Host: localhost',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${megabytes}000000`
  ]
  socket.write(['POST /api/v1/things HTTP/1.1', ...lines, '', ''].join('\r\n'))
  try {
    await pipeline(Readable.from(Array(megabytes).fill(Buffer.alloc(1_000_000, 'x'))), socket, { end: false })
    if (socket.readableLength === 0) await once(socket, 'readable')
    return String(socket.read())
  } catch (error) {
    return String(error)
  } finally {
    socket.destroy()
  }
}

test('a known client reads why its body was refused when it has sent all of it; of others little is taken', async t => {
  const http = await startHttp(t)
  http.mount([post, echo])
  assert.match(await sentWhole(http, http.token, 40), /^HTTP\/1\.1 200 .*is larger than/s)
  assert.doesNotMatch(await sentWhole(http, 'wrong', 40), /^HTTP/)
})

test('a connection survives a small body that nobody reads', async t => {
  const http = await startHttp(t)
  http.mount([get, () => 1])
  const wrong = 'POST /api/v1/nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello'
  const right = `GET /api/v1/things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${http.token}\r\nConnection: close\r\n\r\n`
  const received = await http.raw(wrong + right)
  assert.match(received, /^HTTP\/1\.1 401 /)
  assert.match(received, /HTTP\/1\.1 200 OK/)
})

test('a body that ends early does not disturb the server', async t => {
  const http = await startHttp(t)
  let called = false
  http.mount([
    post,
    () => {
      called = true
      return null
    }
  ])
  const req = request({
    port: http.port,
    method: 'POST',
    path: '/api/v1/things',
    headers: { ...json, authorization: `Bearer ${http.token}`, 'content-length': 100 }
  })
  req.on('error', () => {})
  req.write('{"label"')
  await once(req, 'socket')
  req.destroy()
  assert.equal((await http.send('POST', '/api/v1/things', { headers: json, body: '' })).json.code, 40001)
  assert.equal(called, false)
})

test('the access log knows path template and code, and no secrets', async t => {
  const http = await startHttp(t, { level: 'debug' })
  const spec = { ...get, path: '/api/v1/things/{id}', params: Type.Object({ id: Type.String() }) } as AnyRoute
  http.mount([spec, ({ request: { headers } }) => headers.authorization])
  const { json: envelope } = await http.send('GET', '/api/v1/things/t1?token=hush-hush')
  assert.equal(envelope.data, 'Bearer ***')
  const line = JSON.parse(http.logs.at(-1)!)
  assert.deepEqual(
    [line.method, line.path, line.status, line.code, line.request_id],
    ['GET', '/api/v1/things/{id}', 200, 0, envelope.request_id]
  )
  assert.ok(!http.logs.join('').includes(http.token) && !http.logs.join('').includes('hush'))
})
