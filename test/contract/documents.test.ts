/** The documents of the full server: valid, complete, and always those of the packs that are active now. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { definePack, defineRoute, generalErrors, Type } from '../../kernel/index.ts'
import { startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { recorded } from '../helpers/declared.ts'
import {
  asyncapiProblems,
  type Document,
  failuresOf,
  lintProblems,
  openapiProblems,
  operationsOf,
  schemaJudge
} from '../helpers/documents.ts'

async function read({ rest }: TestKernel, name: 'openapi' | 'asyncapi'): Promise<Document> {
  const answer = await rest.raw('GET', `/${name}.json`)
  assert.equal(answer.status, 200)
  return JSON.parse(answer.body.toString())
}

test('OpenAPI: valid, every mounted route exactly once, with each failure it declares', async t => {
  const { packs, declared } = recorded(await loadDefaultPacks())
  const document = await read(await startTestKernel(t, { packs }), 'openapi')
  assert.equal(await openapiProblems(document), '')
  const shown = operationsOf(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  assert.deepEqual(shown.sort(), declared.routes.map(({ method, path }) => `${method} ${path.replace('{+', '{')}`).sort())
  for (const { method, path, auth, errors = [] } of declared.routes) {
    const failures = failuresOf(document, document.paths[path.replace('{+', '{')][method.toLowerCase()])
    const wanted = [...errors, ...(auth === 'none' ? [] : generalErrors)].map(({ status, code }) => `${status} ${code}`)
    const missing = wanted.filter(entry => !failures.includes(entry))
    assert.deepEqual(missing, [], `${method} ${path}`)
  }
})

test('no operation is told from another by a number behind its name', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const names = operationsOf(await read(server, 'openapi')).map(({ operation }) => operation.operationId as string)
  assert.deepEqual(
    names.filter(name => /\d$/.test(name)),
    []
  )
})

test('AsyncAPI: valid, with every declared event, frame, ack and server frame', async t => {
  const { packs, declared } = recorded(await loadDefaultPacks())
  const document = await read(await startTestKernel(t, { packs }), 'asyncapi')
  assert.equal(asyncapiProblems(document), '')
  const shown = Object.values<Document>(document.components.messages).map(message => message.name)
  const { events, frames, outFrames } = declared
  const kernel = ['client_hello', 'subscribe', 'unsubscribe', 'client_hello_ack', 'subscribe_ack', 'unsubscribe_ack', 'refused_ack']
  const packed = [...events, ...frames, ...outFrames].map(spec => spec.type)
  const acks = frames.map(spec => `${spec.type}_ack`)
  assert.deepEqual(shown.sort(), [...kernel, 'server_hello', 'resync_required', ...packed, ...acks].sort())
})

test('AsyncAPI: every message says what it is, and texts that come in pieces have offsets, nothing else', async t => {
  const { packs, declared } = recorded(await loadDefaultPacks())
  const document = await read(await startTestKernel(t, { packs }), 'asyncapi')
  const messages = Object.values<Document>(document.components.messages)
  assert.deepEqual(
    messages.filter(({ summary }) => !summary).map(({ name }) => name),
    []
  )
  const texts = declared.events.filter(event => event.offset).map(event => event.type)
  assert.deepEqual(
    messages
      .filter(({ payload }) => 'offset' in (payload.properties ?? {}))
      .map(({ name }) => name)
      .sort(),
    texts.sort()
  )
})

test('a public linter finds nothing in either document, and every example fits its schema', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const [openapi, asyncapi] = [await read(server, 'openapi'), await read(server, 'asyncapi')]
  assert.deepEqual(await lintProblems(openapi), [])
  assert.deepEqual(await lintProblems(asyncapi), [])
  const judge = schemaJudge(openapi)
  const unfit = operationsOf(openapi).flatMap(({ method, path, operation }) => {
    const places = [['requestBody'], ...Object.keys(operation.responses).map(status => ['responses', status])]
    return places.flatMap(place => {
      const at = [...place, 'content', 'application/json']
      const { example } = at.reduce((node, key) => node?.[key], operation) ?? {}
      const problem = example === undefined ? '' : judge(['paths', path, method, ...at, 'schema'], example)
      return problem === '' ? [] : [`${method} ${path} ${place.join('.')}: ${problem}`]
    })
  })
  assert.deepEqual(unfit, [])
})

test('clients find the main things by name in both documents, each once', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const names = ['Session', 'SessionMetadata', 'Message', 'ContentPart', 'Workspace', 'Approval', 'Provider', 'Model', 'Prompt', 'Config']
  const { schemas } = (await read(server, 'openapi')).components
  assert.deepEqual(
    [...names, 'Tool', 'SessionSnapshot', 'Connection', 'Feature'].filter(name => !(name in schemas)),
    []
  )
  const told = (await read(server, 'asyncapi')).components.schemas
  for (const name of ['Session', 'Workspace', 'Approval', 'ContentPart', 'Config']) assert.deepEqual(told[name], schemas[name], name)
  assert.deepEqual(schemas.Session.properties.metadata, { $ref: '#/components/schemas/SessionMetadata' })
  assert.deepEqual(schemas.SessionMetadata.required, ['cwd'])
})

test('an object that the documents show in two places has a name', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  for (const kind of ['openapi', 'asyncapi'] as const) {
    const document = await read(server, kind)
    const places = new Map<string, string[]>()
    const look = (node: Document, path: string): void => {
      if (typeof node !== 'object' || node === null) return
      // The envelope of a success says nothing of its own, and sections of the configuration are described, not typed.
      const own = node.type === 'object' && Object.keys(node.properties ?? {}).length >= 3 && node.properties.request_id === undefined
      if (own) places.set(JSON.stringify(node), [...(places.get(JSON.stringify(node)) ?? []), path])
      for (const [key, value] of Object.entries(node)) if (!/^(examples?|Config|ConfigPatch)$/.test(key)) look(value, `${path}/${key}`)
    }
    look(document, kind)
    const twice = [...places.values()].filter(paths => paths.length > 1)
    assert.deepEqual(twice, [], "declare it once: named('Name', Type.Object({ ... }))")
  }
})

test('real replies fit the schemas of their operations', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const judge = schemaJudge(await read(server, 'openapi'))
  const asked = [
    ['/api/v1/healthz', '/api/v1/healthz'],
    ['/api/v1/meta', '/api/v1/meta'],
    ['/api/v1/config', '/api/v1/config'],
    ['/api/v1/workspaces', '/api/v1/workspaces'],
    ['/api/v1/sessions', '/api/v1/sessions'],
    ['/api/v1/sessions?page_size=0', '/api/v1/sessions'],
    ['/api/v1/sessions/session_none', '/api/v1/sessions/{session_id}']
  ] as const
  for (const [url, path] of asked) {
    const answer = await server.rest.raw('GET', url)
    const place = ['paths', path, 'get', 'responses', String(answer.status), 'content', 'application/json', 'schema']
    assert.equal(judge(place, JSON.parse(answer.body.toString())), '', url)
  }
  const refused = await server.rest.raw('GET', '/api/v1/meta', { token: null })
  assert.equal(refused.status, 401)
  assert.equal(judge(['components', 'schemas', 'Error40101'], JSON.parse(refused.body.toString())), '')
})

test('both documents follow the packs that come and go', async t => {
  const ping = defineRoute({ method: 'GET', path: '/api/v1/ping', summary: 'Ping', data: Type.Null() })
  const guest = definePack({
    name: 'guest',
    setup(ctx) {
      ctx.route(ping, () => null)
      ctx.event({ type: 'guest.seen', scope: 'global', durable: true, payload: Type.Object({}) })
    }
  })
  const { default: apiDocs } = await import('../../features/api-docs/pack.ts')
  const server = await startTestKernel(t, { packs: [apiDocs, guest] })
  const listed = async () => [
    '/api/v1/ping' in (await read(server, 'openapi')).paths,
    'guest.seen' in (await read(server, 'asyncapi')).components.messages
  ]
  assert.deepEqual(await listed(), [true, true])
  await server.kernel.unload('guest')
  assert.deepEqual(await listed(), [false, false])
  await server.kernel.load(guest)
  assert.deepEqual(await listed(), [true, true])
})
