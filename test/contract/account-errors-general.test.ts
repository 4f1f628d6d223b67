/** Contract 1: what every one of its routes answers without a credential, under a foreign name and during a ban, over HTTP, from a fresh home. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { accountRoutes } from '../helpers/account-routes.ts'
import { type Asked, JudgedServer } from '../helpers/judged.ts'
import { freshDir } from '../helpers/temp.ts'

/** What makes a request unwelcome, whatever it asks for. A body that would be refused, too, so that the order shows. */
const unwelcome: readonly (readonly [what: string, asked: (server: JudgedServer) => Asked, status: number, code: number])[] = [
  ['no token', () => ({ token: null }), 401, 40101],
  ['a wrong token', () => ({ token: 'wrong' }), 401, 40101],
  ['a token with one letter more', ({ running }) => ({ token: `${running.token}x` }), 401, 40101],
  ['the token under another scheme', ({ running }) => ({ token: null, headers: { authorization: `Basic ${running.token}` } }), 401, 40101],
  ['the token in lower-case bearer', ({ running }) => ({ token: null, headers: { authorization: `bearer ${running.token}` } }), 401, 40101],
  ['a foreign Host', () => ({ headers: { host: 'rebound.example' } }), 403, 40301]
]
/** Needs no credential. */
const open = 'GET /api/v1/healthz'
const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

async function refuses(server: JudgedServer, route: string, what: string, asked: Asked, status: number, code: number): Promise<void> {
  const body = /^(POST|PUT) /.test(route) ? { raw: '{' } : {}
  const answer = await server.ask(route, { ...body, ...asked, headers: { 'x-request-id': id, ...asked.headers } })
  assert.deepEqual(
    [answer.status, answer.code, answer.data, answer.details, answer.request_id, answer.problems],
    [status, code, null, undefined, id, ''],
    `${route}: ${what}`
  )
}

test('no route of contract 1 but the health check answers a request without its credential or under a foreign name', async t => {
  const server = await JudgedServer.start(t, await freshDir())
  const before = await server.files()

  for (const route of accountRoutes) {
    await t.test(route, async () => {
      for (const [what, asked, status, code] of unwelcome) {
        if (route !== open || status !== 401) await refuses(server, route, what, asked(server), status, code)
        else assert.equal((await server.ask(route, asked(server))).code, 0, what)
      }
    })
  }

  assert.deepEqual(await server.files(), before)
  assert.equal((await server.ask('GET /api/v1/providers')).code, 0, 'the server is still there')
  assert.deepEqual(
    server.socket.frames.filter(({ seq }) => seq !== undefined),
    [],
    'nothing was told'
  )
})

/** A server that others could reach, too. */
async function exposed(t: TestContext): Promise<JudgedServer> {
  return await JudgedServer.start(t, await freshDir(), {}, '--host', '0.0.0.0', '--insecure-no-tls')
}

test('beyond loopback there is no shutdown, and after ten failures every route is banned, also with the token', async t => {
  const server = await exposed(t)
  const before = await server.files()
  const gone = await server.ask('POST /api/v1/shutdown', { url: '/api/v1/shutdown' })
  assert.deepEqual([gone.status, gone.code], [404, 40400])
  assert.equal(server.document.paths['/api/v1/shutdown'], undefined)

  for (let failure = 1; failure <= 10; failure++)
    await refuses(server, 'GET /api/v1/models', `failure ${failure}`, { token: 'x' }, 401, 40101)

  for (const route of accountRoutes.filter(route => route !== 'POST /api/v1/shutdown')) {
    await t.test(route, () => refuses(server, route, 'the right token', {}, 429, 42901))
  }
  assert.deepEqual(await server.files(), before)
})
