import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serversAt } from '../../../features/api-docs/document-info.ts'
import { openapiDocument } from '../../../features/api-docs/openapi.ts'
import { type AnyRoute, cursorQuery, defineRoute, errorSpec, named, oneOf, page, Time, Type } from '../../../kernel/index.ts'
import { type Document, failuresOf, openapiProblems, operationsOf, schemaJudge } from '../../helpers/documents.ts'

const NoteMissing = errorSpec('note_missing', 40466, 'no such note')
const NoteBytesMissing = errorSpec('note_bytes_missing', 40467, 'no such bytes', 404)
const id = Type.Object({ note_id: Type.String({ description: 'id of the note' }) })
const Note = Type.Object({ id: Type.String(), text: Type.String() })
const base = { summary: 'A route', data: Type.Object({}) }

const getNote = defineRoute({
  method: 'GET',
  path: '/api/v1/notes/{note_id}',
  summary: 'One note',
  params: id,
  data: Note,
  errors: [NoteMissing]
})
const addNote = defineRoute({
  method: 'POST',
  path: '/api/v1/notes',
  summary: 'Add a note',
  description: 'Long text',
  body: Type.Object({ text: Type.String() }),
  bodyLimit: 2048,
  data: Note,
  status: 201
})
const removeNote = defineRoute({ ...base, method: 'DELETE', path: '/api/v1/notes/{id}', data: Type.Null(), status: 204 })

function documentOf(...routes: AnyRoute[]): Document {
  return openapiDocument(routes, { title: 'svc-code', version: '1.2.3' })
}

test('a document of all kinds of routes is valid OpenAPI 3.1 with title, version, tags and the bearer scheme', async () => {
  const document = documentOf(
    getNote,
    addNote,
    removeNote,
    defineRoute({ ...base, method: 'POST', path: '/api/v1/notes/{note_id}:pin', body: Type.Optional(Type.Object({})) }),
    defineRoute({ ...base, method: 'GET', path: '/api/v1/fs/{+path}:download', binary: { types: ['application/octet-stream'] } }),
    defineRoute({ ...base, method: 'POST', path: '/api/v1/files', bodyType: 'stream' }),
    defineRoute({ ...base, method: 'GET', path: '/api/v1/healthz', auth: 'none' }),
    defineRoute({ ...base, method: 'GET', path: '/' })
  )
  assert.equal(await openapiProblems(document), '')
  assert.equal(document.openapi, '3.1.0')
  assert.equal(document.info.title, 'svc-code')
  assert.equal(document.info.version, '1.2.3')
  assert.deepEqual(
    document.tags.map((tag: Document) => tag.name),
    ['files', 'fs', 'healthz', 'notes', 'other']
  )
  assert.deepEqual(document.security, [{ bearer: [] }])
  assert.equal(document.components.securitySchemes.bearer.scheme, 'bearer')
})

test('an empty table gives a valid document', async () => {
  assert.equal(await openapiProblems(documentOf()), '')
})

test('the order of the routes does not show in the document', () => {
  assert.equal(JSON.stringify(documentOf(getNote, addNote, removeNote)), JSON.stringify(documentOf(removeNote, getNote, addNote)))
})

test('every operation lists its own failures and the general ones under their HTTP status', () => {
  const document = documentOf({ ...getNote, errors: [NoteMissing, NoteBytesMissing] })
  const general = [
    '200 40001',
    '200 50001',
    '200 50003',
    '200 50005',
    '401 40101',
    '403 40301',
    '403 40302',
    '404 40400',
    '429 42901',
    '503 50007'
  ]
  assert.deepEqual(
    failuresOf(document, document.paths['/api/v1/notes/{note_id}'].get).sort(),
    [...general, '200 40466', '404 40467'].sort()
  )
})

test('what has a default need not be sent, and only a body whose default is whole may be missing', () => {
  const depth = Type.Integer({ minimum: 1, default: 1 })
  const bodyOf = (body: AnyRoute['body']) => documentOf({ ...addNote, body } as AnyRoute).paths['/api/v1/notes'].post.requestBody
  const free = bodyOf(Type.Object({ depth }, { default: {} }))
  const bound = bodyOf(Type.Object({ text: Type.String(), depth }, { default: {} }))
  assert.deepEqual([free.required, free.content['application/json'].schema.required], [false, undefined])
  assert.deepEqual(free.content['application/json'].example, { depth: 1 })
  assert.deepEqual([bound.required, bound.content['application/json'].schema.required], [true, ['text']])
  assert.deepEqual([bound.content['application/json'].schema.default, bound.content['application/json'].example], [undefined, undefined])
})

test('one code with two statuses is listed under both, and once where it is declared twice', () => {
  const real = { ...NoteMissing, status: 404 }
  const document = documentOf({ ...getNote, errors: [NoteMissing, real, NoteMissing] })
  const failures = failuresOf(document, document.paths['/api/v1/notes/{note_id}'].get)
  assert.deepEqual(
    failures.filter(entry => entry.endsWith('40466')),
    ['200 40466', '404 40466']
  )
})

test('every operation names the scope that its route asks for', async () => {
  const document = documentOf(getNote, { ...addNote, scope: 'notes' })
  const scopeOf = (operation: Document) => [operation.security, operation['x-required-scope']]
  assert.deepEqual(scopeOf(document.paths['/api/v1/notes/{note_id}'].get), [[{ bearer: [] }], 'api'])
  assert.deepEqual(scopeOf(document.paths['/api/v1/notes'].post), [[{ bearer: [] }], 'notes'])
  assert.equal(await openapiProblems(document), '')
})

test('a route without credential has no security and cannot answer 40101', () => {
  const document = documentOf(defineRoute({ ...base, method: 'GET', path: '/api/v1/healthz', auth: 'none' }))
  const { get } = document.paths['/api/v1/healthz']
  assert.deepEqual(get.security, [])
  assert.deepEqual(Object.keys(get.responses), ['200', '403', '404', '429', '503'])
})

test('below /api only GET goes without a credential, whatever a route says', () => {
  const document = documentOf(defineRoute({ ...base, method: 'POST', path: '/api/v1/notes', auth: 'none' }))
  const { post } = document.paths['/api/v1/notes']
  assert.deepEqual(post.security, [{ bearer: [] }])
  assert.ok('401' in post.responses)
})

test('envelopes of success and failure fit the schema of their status, others do not', () => {
  const judge = schemaJudge(documentOf(getNote))
  const place = ['paths', '/api/v1/notes/{note_id}', 'get', 'responses', '200', 'content', 'application/json', 'schema']
  const request_id = '01JD0000000000000000000000'
  const success = { code: 0, msg: 'success', data: { id: 'a', text: 'b' }, request_id }
  assert.equal(judge(place, success), '')
  assert.equal(judge(place, { code: 40466, msg: 'no such note', data: null, request_id }), '')
  assert.equal(judge(place, { code: 40001, msg: 'x', data: null, request_id, details: [{ path: 'a.0', message: 'x' }] }), '')
  assert.notEqual(judge(place, { code: 40001, msg: 'x', data: null, request_id }), '')
  assert.notEqual(judge(place, { ...success, data: { id: 'a' } }), '')
  assert.notEqual(judge(place, { code: 40467, msg: 'x', data: null, request_id }), '')
})

test('a success code of its own and the statuses 201 and 204 are as declared', () => {
  const document = documentOf(addNote, removeNote, defineRoute({ ...base, method: 'POST', path: '/api/v1/asks', successCode: 40909 }))
  const created = document.paths['/api/v1/notes'].post.responses
  assert.equal(created['201'].content['application/json'].schema.properties.code.const, 0)
  assert.ok('200' in created, 'failures keep HTTP 200')
  assert.equal(document.paths['/api/v1/notes/{id}'].delete.responses['204'].content, undefined)
  const [success] = document.paths['/api/v1/asks'].post.responses['200'].content['application/json'].schema.anyOf
  assert.equal(success.properties.code.const, 40909)
})

test('a byte reply has its media types and statuses beside the JSON failures', () => {
  const binary = { types: ['image/png', 'image/jpeg'], statuses: [200, 206, 304] }
  const document = documentOf(defineRoute({ ...base, method: 'GET', path: '/api/v1/pictures', binary, errors: [NoteBytesMissing] }))
  const { responses } = document.paths['/api/v1/pictures'].get
  assert.deepEqual(Object.keys(responses), ['200', '206', '304', '401', '403', '404', '429', '503'])
  assert.deepEqual(Object.keys(responses['200'].content), ['image/png', 'image/jpeg', 'application/json'])
  const bytes = { schema: { type: 'string', contentMediaType: 'application/octet-stream', format: 'binary' } }
  assert.deepEqual(responses['206'].content, { 'image/png': bytes, 'image/jpeg': bytes })
  assert.equal(responses['304'].content, undefined)
})

test('a body may be left out only when it is optional or has a default; uploads are multipart, their files bytes', () => {
  const post = { ...base, method: 'POST' } as const
  const bytes = Type.String({ contentMediaType: 'application/octet-stream' })
  const document = documentOf(
    addNote,
    defineRoute({ ...post, path: '/api/v1/a', body: Type.Optional(Type.Object({ count: Type.Integer() })) }),
    defineRoute({ ...post, path: '/api/v1/b', body: Type.Object({}, { default: {} }) }),
    defineRoute({ ...post, path: '/api/v1/c', bodyType: 'stream', body: Type.Object({ file: bytes }), bodyLimit: 99 })
  )
  const bodyOf = (path: string) => document.paths[path].post.requestBody
  assert.equal(bodyOf('/api/v1/notes').required, true)
  assert.equal(bodyOf('/api/v1/notes').description, 'At most 2048 bytes')
  assert.equal(bodyOf('/api/v1/a').required, false)
  assert.equal(bodyOf('/api/v1/b').required, false)
  const { schema } = bodyOf('/api/v1/c').content['multipart/form-data']
  assert.deepEqual(schema.required, ['file'])
  assert.deepEqual(schema.properties.file, { type: 'string', contentMediaType: 'application/octet-stream', format: 'binary' })
})

test('path and query values are parameters: required as the pipeline sees it, arrays by repeated keys', () => {
  const query = Type.Composite([
    cursorQuery(20),
    Type.Object({ kind: oneOf(['a', 'b'], { default: 'a' }), tag: Type.Array(Type.String()), sort: Type.String({ description: 'order' }) })
  ])
  const document = documentOf({ ...getNote, query })
  const { parameters } = document.paths['/api/v1/notes/{note_id}'].get
  const facts = parameters.map(({ name, in: place, required }: Document) => `${place} ${name}${required ? '' : '?'}`)
  assert.deepEqual(facts, [
    'path note_id',
    'query before_id?',
    'query after_id?',
    'query page_size?',
    'query kind?',
    'query tag',
    'query sort'
  ])
  const byName = Object.fromEntries(parameters.map((one: Document) => [one.name, one]))
  assert.deepEqual([byName.tag.style, byName.tag.explode], ['form', true])
  assert.equal(byName.sort.description, 'order')
  assert.deepEqual(byName.kind.schema, { type: 'string', enum: ['a', 'b'], default: 'a' })
  assert.equal(byName.note_id.description, 'id of the note')
  assert.deepEqual([byName.page_size.schema.maximum, byName.page_size.schema.default], [100, 20])
})

test('operation ids read as a verb and what it is about, and stay unique; a route may bring its own', async () => {
  const route = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, operationId?: string) =>
    defineRoute({ ...base, method, path, ...(operationId !== undefined && { operationId }) })
  const document = documentOf(
    route('GET', '/api/v1/sessions'),
    route('POST', '/api/v1/sessions'),
    route('GET', '/api/v1/sessions/{session_id}'),
    route('GET', '/api/v1/sessions/{session_id}/status'),
    route('GET', '/api/v1/sessions/{session_id}/children'),
    route('POST', '/api/v1/sessions/{session_id}/children'),
    route('POST', '/api/v1/sessions/{session_id}:abort'),
    route('POST', '/api/v1/sessions/{session_id}/title/generate'),
    route('GET', '/api/v1/gui/store/getItem'),
    route('POST', '/api/v1/search'),
    route('POST', '/api/v1/sessions/{session_id}/profile'),
    route('POST', '/api/v1/sessions/{session_id}/fs:git_status'),
    route('POST', '/api/v1/models/{model_id}:set_default'),
    route('PUT', '/api/v1/catalog/entries/{id}'),
    route('PATCH', '/api/v1/config'),
    route('DELETE', '/api/v1/oauth/login', 'cancelLogin'),
    route('GET', '/api/v2/sessions'),
    route('GET', '/api/v3/session')
  )
  assert.deepEqual(
    operationsOf(document)
      .map(({ operation }) => operation.operationId)
      .sort(),
    [
      'abortSession',
      'cancelLogin',
      'createSession',
      'createSessionChild',
      'generateSessionTitle',
      'getItemGuiStore',
      'getSession',
      'getSessionStatus',
      'getSessionV3',
      'gitStatusSessionFs',
      'listSessionChildren',
      'listSessions',
      'listSessionsV2',
      'replaceCatalogEntry',
      'search',
      'setDefaultModel',
      'updateConfig',
      'updateSessionProfile'
    ]
  )
  const twice = documentOf(route('GET', '/api/v1/notes'), route('GET', '/notes'))
  assert.deepEqual(
    operationsOf(twice).map(({ operation }) => operation.operationId),
    ['listNotes', 'listNotes_2']
  )
  assert.equal(await openapiProblems(document), '')
})

test('a summary that is a question stays one in the description', () => {
  const document = documentOf(defineRoute({ ...getNote, summary: 'Is it ready?', errors: [] }))
  assert.equal(operationsOf(document)[0]?.operation.description, 'Is it ready?')
})

test('a shape with a name stands once in components, with its nested ones, and every use refers to it', async () => {
  const Mood = named('Mood', oneOf(['good', 'bad']))
  const Author = named('Author', Type.Object({ name: Type.String(), mood: Mood }))
  const Page = named('Page', Type.Object({ id: Type.String(), author: Author, editor: Type.Optional(Author) }, { description: 'a page' }))
  const document = documentOf(
    defineRoute({ ...base, method: 'GET', path: '/api/v1/pages', data: page(Page), query: Type.Object({ mood: Type.Optional(Mood) }) }),
    defineRoute({
      ...base,
      method: 'PUT',
      path: '/api/v1/pages/{id}',
      body: Page,
      data: Type.Object({ page: { ...Page, description: 'after' } })
    }),
    defineRoute({ ...base, method: 'POST', path: '/api/v1/pages', body: Type.Pick(Page, ['id']), data: Type.Partial(Author) })
  )
  const { schemas } = document.components
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  assert.deepEqual(schemas.Page.properties, { id: { type: 'string' }, author: ref('Author'), editor: ref('Author') })
  assert.deepEqual(schemas.Author.properties.mood, ref('Mood'))
  const { get, post } = document.paths['/api/v1/pages']
  const { put } = document.paths['/api/v1/pages/{id}']
  const dataOf = (operation: Document) => operation.responses['200'].content['application/json'].schema.anyOf[0].properties.data
  assert.deepEqual(dataOf(get).properties.items.items, ref('Page'))
  assert.deepEqual(get.parameters[0].schema, ref('Mood'))
  assert.deepEqual(put.requestBody.content['application/json'].schema, ref('Page'))
  assert.deepEqual(dataOf(put).properties.page, { description: 'after', ...ref('Page') })
  assert.equal(post.requestBody.content['application/json'].schema.$ref, undefined, 'what is derived has no name')
  assert.equal(dataOf(post).$ref, undefined)
  assert.equal(await openapiProblems(document), '')
})

test('the servers of a document are addresses that a client can call', () => {
  const at = (host: string) => serversAt({ host, port: 7 })?.map(server => server.host)
  assert.deepEqual(at('127.0.0.1'), ['127.0.0.1:7'])
  assert.deepEqual(at('0.0.0.0'), ['127.0.0.1:7'])
  assert.deepEqual(at('::'), ['127.0.0.1:7'])
  assert.deepEqual(at('::1'), ['[::1]:7'])
  assert.deepEqual(serversAt(undefined), [])
})

test('a recursive shape may have a name', () => {
  const Tree = named(
    'Tree',
    Type.Recursive(This => Type.Object({ children: Type.Array(This) }))
  )
  const { schemas } = documentOf(defineRoute({ ...base, method: 'GET', path: '/api/v1/tree', data: Tree })).components
  assert.deepEqual(schemas.Tree.properties.children, { type: 'array', items: { $ref: '#/components/schemas/Tree' } })
})

test('names of shapes are PascalCase and not those of failures', () => {
  for (const name of ['session', 'A b', '', 'Error40401', `A${'b'.repeat(64)}`]) {
    assert.throws(() => named(name, Type.Object({})), { code: 'shape_name_bad' }, name)
  }
})

test('examples of bodies and replies are put together from declared ones, and fit their schemas', () => {
  const Word = Type.Object({
    id: Type.String({ examples: ['word_1'] }),
    at: Time,
    gone_at: Type.Optional(Time),
    kind: oneOf(['noun', 'verb']),
    tags: Type.Array(Type.String({ examples: ['short'] })),
    note: Type.Optional(Type.String()),
    count: Type.Integer({ minimum: 1 })
  })
  const document = documentOf(
    defineRoute({ ...base, method: 'POST', path: '/api/v1/words', body: Type.Pick(Word, ['id', 'kind']), data: Word }),
    defineRoute({ ...base, method: 'GET', path: '/api/v1/words', data: Type.Object({ secret: Type.String() }) })
  )
  const { post, get } = document.paths['/api/v1/words']
  assert.deepEqual(post.requestBody.content['application/json'].example, { id: 'word_1', kind: 'noun' })
  const { example } = post.responses['200'].content['application/json']
  assert.deepEqual(example.data, { id: 'word_1', at: '2026-01-31T09:30:00.000Z', kind: 'noun', tags: ['short'], count: 1 })
  const place = ['paths', '/api/v1/words', 'post', 'responses', '200', 'content', 'application/json', 'schema']
  assert.equal(schemaJudge(document)(place, example), '')
  assert.equal(get.responses['200'].content['application/json'].example, undefined, 'nobody gave an example of the secret')
})

test('every operation has a description with the failures of its own, and the tag of its pack', () => {
  const owners = new Map([[getNote, { name: 'notes', description: 'Notes on everything', area: 'Office' }]])
  const servers = [{ host: '127.0.0.1:7', description: 'here' }]
  const document: Document = openapiDocument([getNote, addNote], { title: 'svc-code', version: '1', owners, servers })
  const { get } = document.paths['/api/v1/notes/{note_id}']
  assert.equal(get.description, 'One note.\n\nFailures of its own: 40466 no such note.')
  assert.deepEqual(get.tags, ['notes'])
  assert.deepEqual(document.tags, [{ name: 'notes', description: 'Notes on everything' }])
  assert.deepEqual(document['x-tagGroups'], [{ name: 'Office', tags: ['notes'] }])
  assert.deepEqual(document.servers, [{ url: 'http://127.0.0.1:7', description: 'here' }])
})

test('paths that differ in the names of parameters only are one path', async () => {
  const document = documentOf(getNote, defineRoute({ ...base, method: 'PUT', path: '/api/v1/notes/{+tail}' }), removeNote)
  assert.deepEqual(Object.keys(document.paths), ['/api/v1/notes/{note_id}'])
  const item = document.paths['/api/v1/notes/{note_id}']
  assert.deepEqual(Object.keys(item), ['get', 'put', 'delete'])
  assert.equal(item.delete.parameters[0].name, 'note_id')
  assert.equal(await openapiProblems(document), '')
})

test('one segment and a long tail with the same method both stay in the document', async () => {
  const document = documentOf(getNote, defineRoute({ ...base, method: 'GET', path: '/api/v1/notes/{+path}' }))
  assert.deepEqual(Object.keys(document.paths), ['/api/v1/notes/{note_id}', '/api/v1/notes/{+path}'])
  assert.equal(document.paths['/api/v1/notes/{+path}'].get.parameters[0].name, '+path')
  assert.equal(await openapiProblems(document), '')
})

test('recursive and modular schemas become components and still judge values', async () => {
  const Tree = Type.Recursive(This => Type.Object({ name: Type.String(), children: Type.Array(This) }))
  const forest = Type.Module({
    Leaf: Type.Object({ twig: Type.Ref('Twig') }),
    Twig: Type.Object({ leaf: Type.Optional(Type.Ref('Leaf')) })
  })
  const document = documentOf(
    defineRoute({ ...base, method: 'GET', path: '/api/v1/tree', data: Tree }),
    defineRoute({ ...base, method: 'POST', path: '/api/v1/tree', body: Tree, data: Type.Array(Tree) }),
    defineRoute({ ...base, method: 'GET', path: '/api/v1/leaf', data: forest.Import('Leaf') })
  )
  assert.equal(await openapiProblems(document), '')
  const { schemas } = document.components
  assert.deepEqual(
    Object.keys(schemas).filter(name => !name.startsWith('Error')),
    ['Leaf', 'Twig', 'Recursive']
  )
  assert.doesNotMatch(JSON.stringify(document), /\$id|\$defs/)
  const judge = schemaJudge(document)
  const place = ['components', 'schemas', 'Recursive']
  assert.equal(judge(place, { name: 'a', children: [{ name: 'b', children: [] }] }), '')
  assert.notEqual(judge(place, { name: 'a', children: [{ name: 1, children: [] }] }), '')
})

test('different schemas with one id stay apart', () => {
  const one = Type.Recursive(This => Type.Object({ next: Type.Optional(This) }), { $id: 'Node' })
  const two = Type.Recursive(This => Type.Object({ last: Type.Optional(This) }), { $id: 'Node' })
  const document = documentOf(
    defineRoute({ ...base, method: 'GET', path: '/api/v1/one', data: one }),
    defineRoute({ ...base, method: 'GET', path: '/api/v1/two', data: two })
  )
  assert.deepEqual(document.components.schemas.Node.properties, { next: { $ref: '#/components/schemas/Node' } })
  assert.deepEqual(document.components.schemas.Node_2.properties, { last: { $ref: '#/components/schemas/Node_2' } })
})

test('fields named like keywords of JSON Schema are fields, and declarations are not changed', () => {
  const data = Type.Object({
    $id: Type.String(),
    $ref: Type.String(),
    default: Type.Object({ const: Type.Date() }),
    properties: Type.Null()
  })
  const before = JSON.stringify(data)
  const document = documentOf(defineRoute({ ...base, method: 'GET', path: '/api/v1/odd', data }))
  const [success] = document.paths['/api/v1/odd'].get.responses['200'].content['application/json'].schema.anyOf
  assert.deepEqual(success.properties.data.properties, {
    $id: { type: 'string' },
    $ref: { type: 'string' },
    default: { type: 'object', required: ['const'], properties: { const: {} } },
    properties: { type: 'null' }
  })
  assert.equal(JSON.stringify(data), before)
})
