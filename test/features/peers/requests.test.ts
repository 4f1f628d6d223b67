/** Requests that one server passes on to another: what goes along, and which may be asked again. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { Unreached } from '../../../features/peers/owner.ts'
import { answering, Requests } from '../../../features/peers/requests.ts'
import { AppError, type Asker, movedStatus, OwnerSilent, type Relays } from '../../../kernel/index.ts'
import { socketPair } from './socket-pair.ts'

const timeout = 20_000
const principal = { id: 'someone', scopes: ['api'] } as never

type Serve = (req: IncomingMessage, res: ServerResponse, asker: Asker) => void

function scene(t: TestContext, serve: Serve) {
  const server = answering({ serve } as Relays)
  const dialled: Socket[] = []
  const requests = new Requests(async () => {
    const [here, there] = await socketPair(t)
    dialled.push(there)
    server.emit('connection', there)
    there.resume()
    return here
  })
  t.after(() => {
    requests.close()
    server.closeAllConnections()
  })
  const ask = (method: 'GET' | 'POST', body?: string, headers: Record<string, string> = {}, signal = new AbortController().signal) =>
    requests.ask(
      { id: 'request-1', method, url: '/api/v1/x?y=1', headers, principal, remote_address: '10.1.2.3' } as never,
      body === undefined ? undefined : Readable.from([body]),
      signal
    )
  return { requests, ask, dialled }
}

const text = async (body: Readable) => Buffer.concat(await body.toArray()).toString()

test('a request goes on with who asks and its id, and without what was for the first server alone', { timeout }, async t => {
  const seen: { headers: Record<string, unknown>; asker: Asker; body: string }[] = []
  const { ask } = scene(t, async (req, res, asker) => {
    seen.push({ headers: { ...req.headers }, asker, body: await text(req) })
    res.setHeader('x-kind', 'answer')
    res.setHeader('connection', 'close')
    res.end(`${req.method} ${req.url}`)
  })
  const headers = {
    authorization: 'Bearer secret',
    cookie: 'token=secret',
    host: 'outside:1',
    expect: '100-continue',
    te: 'trailers',
    'proxy-authorization': 'x',
    upgrade: 'h2c',
    'x-relayed-asker': '{"principal":{"id":"somebody else"},"remote_address":null}',
    'content-type': 'application/json',
    range: 'bytes=0-1'
  }
  const { status, headers: answered, body } = await ask('POST', '{"a":1}', headers)
  assert.deepEqual([status, await text(body)], [200, 'POST /api/v1/x?y=1'])
  assert.equal(answered['x-kind'], 'answer')
  for (const name of ['connection', 'keep-alive', 'transfer-encoding']) assert.ok(!(name in answered), name)
  const [first] = seen
  assert.deepEqual([first?.asker, first?.body], [{ principal, remote_address: '10.1.2.3' }, '{"a":1}'])
  assert.deepEqual(
    Object.keys(first?.headers ?? {}).sort(),
    ['connection', 'content-type', 'host', 'range', 'transfer-encoding', 'x-request-id'].sort()
  )
  assert.equal(first?.headers['x-request-id'], 'request-1')
  assert.notEqual(first?.headers.host, 'outside:1')
})

test('requests share a socket one after the other', { timeout }, async t => {
  const { ask, dialled } = scene(t, (_req, res) => res.end('x'))
  for (let n = 0; n < 3; n++) await text((await ask('GET')).body)
  assert.equal(dialled.length, 1)
})

test('a server that ends without an answer may be asked again for what changes nothing, and for nothing else', { timeout }, async t => {
  const { ask } = scene(t, req => req.socket.destroy())
  await assert.rejects(ask('GET'), Unreached)
  for (const asked of [ask('GET', 'with a body'), ask('POST'), ask('POST', 'x')])
    await assert.rejects(asked, error => AppError.is(error) && error.spec === OwnerSilent)
})

test('what could not be sent is not reached, whatever it is', { timeout }, async () => {
  const requests = new Requests(() => Promise.reject(new Error('nobody is there')))
  const request = { id: 'r', method: 'POST', url: '/', headers: {}, principal, remote_address: null } as never
  await assert.rejects(requests.ask(request, Readable.from(['x']), new AbortController().signal), Unreached)
})

test('a session that has moved on is looked for again, unless the body was sent', { timeout }, async t => {
  const { ask } = scene(t, (_req, res) => res.writeHead(movedStatus).end())
  await assert.rejects(ask('POST'), Unreached)
  await assert.rejects(ask('POST', 'x'), error => AppError.is(error) && error.spec === OwnerSilent)
})

test('a server that hangs is given up, and what it was asked ends there', { timeout }, async t => {
  let arrived: () => void = () => undefined
  let ended: () => void = () => undefined
  const [hears, ends] = [new Promise<void>(resolve => (arrived = resolve)), new Promise<void>(resolve => (ended = resolve))]
  const { ask, requests } = scene(t, (req, res) => {
    res.on('close', () => ended())
    req.resume()
    arrived()
  })
  const asked = ask('GET')
  await hears
  requests.giveUp()
  await assert.rejects(asked, Unreached)
  await ends
})

test('a client that goes ends its request at the other server, with its own reason', { timeout }, async t => {
  let ended: () => void = () => undefined
  const ends = new Promise<void>(resolve => (ended = resolve))
  const gone = new AbortController()
  const { ask } = scene(t, (_req, res) => {
    res.on('close', () => ended())
    gone.abort()
  })
  await assert.rejects(ask('GET', undefined, {}, gone.signal), { name: 'AbortError' })
  await ends
})
