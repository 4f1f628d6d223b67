/**
 * The documents and the wire: whatever a test client gets is held against the document of its route or message (`helpers/wire`). Here: these
 * documents are what the server serves, every operation refuses as documented, and what a whole run has to have seen (`test/run.mjs`).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { type Document, operationsOf } from '../helpers/documents.ts'
import { documented } from '../helpers/wire/answers.ts'
import { demand } from '../helpers/wire/coverage.ts'
import { documentedMessage } from '../helpers/wire/frames.ts'

async function served({ rest }: TestKernel, name: 'openapi' | 'asyncapi'): Promise<Document> {
  return JSON.parse((await rest.raw('GET', `/${name}.json`)).body.toString())
}

/** The node with what it refers to in it; a shape that holds itself is cut there. */
function inlined(document: Document, node: Document, above: readonly string[] = []): Document {
  if (Array.isArray(node)) return node.map(each => inlined(document, each, above))
  if (typeof node !== 'object' || node === null) return node
  const { $ref, ...rest } = node
  const own = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, inlined(document, value, above)]))
  if (typeof $ref !== 'string') return own
  if (above.includes($ref)) return { ...own, recursion: $ref }
  const target = $ref
    .slice(2)
    .split('/')
    .reduce((at: Document, key: string) => at[key], document)
  return { ...own, ...inlined(document, target, [...above, $ref]) }
}

test('the documents that answers and frames of tests are held against say what the served ones say', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const { routes, ...declared } = server.kernel.declarations()
  const openapi = await served(server, 'openapi')
  for (const route of routes) {
    const { document, operation } = documented(route)
    const path = openapi.paths[route.path] ?? openapi.paths[route.path.replace('{+', '{')]
    const shown = path[route.method.toLowerCase()].responses
    assert.deepEqual(inlined(openapi, shown), inlined(document, operation.responses), `${route.method} ${route.path}`)
  }
  const asyncapi = await served(server, 'asyncapi')
  const payload = (document: Document, name: string) => inlined(document, document.components.messages[name].payload)
  for (const kind of ['events', 'frames', 'outFrames', 'systemFrames'] as const) {
    for (const spec of declared[kind]) {
      const name = kind === 'frames' ? `${spec.type}_ack` : spec.type
      const document = documentedMessage(kind, spec, declared.subject)
      assert.deepEqual(payload(document, name), payload(asyncapi, name), name)
    }
  }
})

test('every operation refuses as it documents: without a credential, of a thing that nobody has, and with what is no input', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const openapi = await served(server, 'openapi')
  for (const { method, path, operation } of operationsOf(openapi)) {
    const name = `${method.toUpperCase()} ${path}`
    const url = path.replace(/\{\+?(\w+)\}/g, 'nobody')
    const ask = async (query: string, options: object = {}) => {
      const { body } = await server.rest.raw(method.toUpperCase(), url + query, options)
      return JSON.parse(body.toString()).code
    }
    if (operation.security.length > 0) assert.equal(await ask('', { token: null }), 40101, name)
    const { parameters = [] } = operation
    const query = parameters.filter((one: Document) => one.in === 'query')
    const typed = query.find(({ schema }: Document) => /^(integer|boolean)$/.test(schema.type) || schema.enum)
    if (query.some((one: Document) => one.required)) assert.notEqual(await ask(''), 0, `${name} without its query`)
    else if (typed) assert.notEqual(await ask(`?${typed.name}=%7B&${typed.name}=%7D`), 0, `${name} with a bad ${typed.name}`)
    else if (operation.requestBody) {
      const headers = { 'content-type': 'application/json' }
      assert.notEqual(await ask('', { headers, body: '{"a":' }), 0, `${name} with what is no JSON`)
    } else if (url !== path) await ask('')
  }
  assert.equal((await (await server.connect()).request('nobody_knows')).code, 40001)
})

test('a whole run has to see every operation succeed and fail, and every message of the server', async t => {
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  demand(server.kernel.declarations().routes, Object.keys(answers(await served(server, 'asyncapi'))))
})

/** The messages that the server sends. */
function answers({ operations, components }: Document): Document {
  const names = operations.sendServerMessages.messages.map(({ $ref }: Document) => $ref.split('/').at(-1))
  return Object.fromEntries(names.map((name: string) => [name, components.messages[name]]))
}
