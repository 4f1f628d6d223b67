import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { binary, definePack, defineRoute, Type } from '../../../kernel/index.ts'
import { kernels, newSession } from './kernels.ts'

const timeout = 60_000
const params = Type.Object({ session_id: Type.String() })
const base = '/api/v1/sessions/{session_id}/probe' as const
const upload = defineRoute({
  method: 'POST',
  path: base,
  summary: 'Take bytes',
  params,
  bodyType: 'stream',
  data: Type.Object({ bytes: Type.Integer(), server_id: Type.String(), asker: Type.String() })
})
const download = defineRoute({
  method: 'GET',
  path: base,
  summary: 'Give bytes',
  params,
  data: Type.Null(),
  binary: { types: ['application/octet-stream'] }
})
const wait = defineRoute({ method: 'GET', path: `${base}/wait`, summary: 'Wait for the end', params, data: Type.Null() })

test('uploads, downloads and the end of a client pass to the server that has the session', { timeout }, async t => {
  const content = randomBytes(3_000_000)
  let ended: () => void = () => undefined
  const over = new Promise<void>(resolve => {
    ended = resolve
  })
  let asked: () => void = () => undefined
  const waiting = new Promise<void>(resolve => {
    asked = resolve
  })
  const probe = definePack({
    name: 'probe',
    setup(ctx) {
      ctx.route(upload, async ({ request: { stream, principal } }) => {
        let bytes = 0
        for await (const part of stream) bytes += (part as Buffer).length
        return { bytes, server_id: ctx.newId(), asker: principal.kind }
      })
      ctx.route(download, () =>
        binary({ stream: Readable.from([content.subarray(0, 7), content.subarray(7)]), type: 'application/octet-stream' })
      )
      ctx.route(wait, ({ signal }) => {
        asked()
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            ended()
            reject(signal.reason)
          })
        )
      })
    }
  })
  const { servers, cwd } = await kernels(t, [[{ text: 'x' }]], 2, [probe])
  const [first, second] = [servers[0]!, servers[1]!]
  const path = `/api/v1/sessions/${await newSession(first, cwd)}/probe`

  const taken = await second.rest.raw('POST', path, { body: content })
  const { data } = JSON.parse(String(taken.body)) as { data: { bytes: number; asker: string } }
  assert.deepEqual([data.bytes, data.asker], [content.length, 'token'])
  const given = await second.rest.raw('GET', path)
  assert.equal(given.headers['content-type'], 'application/octet-stream')
  assert.ok(given.body.equals(content))

  const { hostname, port } = new URL(second.url)
  const gone = request({ host: hostname, port, path: `${path}/wait`, headers: { authorization: `Bearer ${second.token}` } })
  gone.on('error', () => undefined)
  gone.end()
  await waiting
  gone.destroy()
  await over
})
