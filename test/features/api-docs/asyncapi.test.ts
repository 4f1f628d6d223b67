import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asyncapiDocument } from '../../../features/api-docs/asyncapi.ts'
import {
  defineEvent,
  defineFrame,
  defineOutFrame,
  definePack,
  type EventSpec,
  EventSubject,
  errorSpec,
  Type
} from '../../../kernel/index.ts'
import { coreFrames, systemFrames } from '../../../kernel/realtime/control-frames.ts'
import { startTestKernel, stub } from '../../../kernel/testing.ts'
import { asyncapiProblems, type Document, schemaJudge } from '../../helpers/documents.ts'
import { agents } from '../../helpers/hub.ts'

const info = { title: 'svc-code', version: '1.2.3' }
const Full = errorSpec('full', 42966, 'too many notes')
const noteAdded = defineEvent({
  type: 'event.note.added',
  scope: 'global',
  durable: true,
  summary: 'A note was added',
  payload: Type.Object({ note_id: Type.String() })
})
const noteTyped = defineEvent({
  type: 'note.typed',
  scope: 'session',
  durable: false,
  payload: Type.Object({ text: Type.String() }),
  offset: true
})
const watchNotes = defineFrame({
  type: 'watch_notes',
  payload: Type.Object({ note_ids: Type.Array(Type.String()) }),
  ack: Type.Object({ watching: Type.Integer() }),
  errors: [Full]
})
const noteOutput = defineOutFrame({ type: 'note_output', payload: Type.Object({ data: Type.String() }) })

/** The document of the kernel's own frames and these declarations. */
function documentOf(events: readonly EventSpec[] = [noteTyped, noteAdded], frames = [watchNotes], outFrames = [noteOutput]): Document {
  return asyncapiDocument({ events, frames: [...coreFrames(agents), ...frames], outFrames, systemFrames, subject: agents }, info)
}

const payloadOf = (message: string) => ['components', 'messages', message, 'payload']

test('the document is valid AsyncAPI 3.1 with one channel and both directions', () => {
  const document = documentOf()
  assert.equal(asyncapiProblems(document), '')
  assert.equal(document.asyncapi, '3.1.0')
  assert.deepEqual(
    Object.values(document.channels as Record<string, Document>).map(channel => channel.address),
    ['/api/v1/ws']
  )
  const namesOf = (operation: string) =>
    document.operations[operation].messages.map((message: Document) => message.$ref.replace('#/channels/ws/messages/', ''))
  assert.deepEqual(namesOf('receiveClientMessages'), ['client_hello', 'subscribe', 'unsubscribe', 'watch_notes'])
  assert.deepEqual(namesOf('sendServerMessages'), [
    'server_hello',
    'resync_required',
    'client_hello_ack',
    'subscribe_ack',
    'unsubscribe_ack',
    'watch_notes_ack',
    'refused_ack',
    'note_output',
    'event.note.added',
    'note.typed'
  ])
})

test('without any pack the frames of the kernel are left', () => {
  const document = documentOf([], [], [])
  assert.equal(asyncapiProblems(document), '')
  assert.ok('subscribe_ack' in document.components.messages)
})

test('every request frame names the scope that it asks for', () => {
  const { messages } = documentOf([], [{ ...watchNotes, scope: 'notes' }]).components
  assert.deepEqual([messages.subscribe['x-required-scope'], messages.watch_notes['x-required-scope']], ['api', 'notes'])
})

test('a declared failure of a frame is named in its ack', () => {
  const [success, failure] = documentOf().components.messages.watch_notes_ack.payload.anyOf
  assert.deepEqual(success.properties.payload.required, ['watching'])
  assert.match(failure.properties.code.description, /42966 too many notes/)
})

test('a refused token is named in the ack of client_hello', () => {
  const [, failure] = documentOf().components.messages.client_hello_ack.payload.anyOf
  assert.match(failure.properties.code.description, /40112 the credential was rejected/)
})

test('whatever a generator makes a type of has a name: messages, their payloads, both answers of a request', () => {
  const { messages } = documentOf().components
  const { title, properties } = messages['event.note.added'].payload
  assert.deepEqual([title, properties.payload.title], ['EventNoteAddedMessage', 'EventNoteAddedPayload'])
  const answers = messages.watch_notes_ack.payload.anyOf
  assert.deepEqual(
    answers.map((answer: Document) => [answer.title, answer.type, answer.required.length]),
    [
      ['WatchNotesAccepted', 'object', 5],
      ['WatchNotesRefused', 'object', 5]
    ]
  )
})

test('an event and a system frame of one name are two messages', () => {
  const event = defineEvent({ type: 'server_hello', scope: 'global', durable: true, payload: Type.Object({}) })
  const { messages } = documentOf([event]).components
  assert.equal(messages.server_hello_2.name, 'server_hello')
})

test('a field that the owner declares replaces the base field, but never the type', () => {
  const payload = Type.Object({ type: Type.Integer(), sessionId: Type.Literal('s1') })
  const event = defineEvent({ type: 'note.odd', scope: 'session', durable: true, payload })
  const { properties } = documentOf([event]).components.messages['note.odd'].payload.properties.payload
  assert.equal(properties.type.const, 'note.odd')
  assert.equal(properties.sessionId.const, 's1')
})

test('a payload that is no plain object keeps its shape beside the base fields', () => {
  const payload = Type.Union([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })])
  const event = defineEvent({ type: 'note.either', scope: 'session', durable: true, payload })
  const document = documentOf([event])
  assert.equal(asyncapiProblems(document), '')
  const judge = schemaJudge(document)
  const place = [...payloadOf('note.either'), 'properties', 'payload']
  assert.equal(judge(place, { type: 'note.either', agentId: 'main', sessionId: 's', a: '' }), '')
  assert.notEqual(judge(place, { type: 'note.either', agentId: 'main', sessionId: 's' }), '')
  assert.notEqual(judge(place, { type: 'note.either', agentId: 'main', a: '' }), '')
})

test('the frames that a server really sends fit their messages', async t => {
  let emitAll = () => {}
  const pack = definePack({
    name: 'notes',
    setup(ctx) {
      const added = ctx.event(noteAdded)
      const typed = ctx.event({ ...noteTyped, deliver: 'everyone' })
      ctx.frame(watchNotes, ({ payload }) => ({ watching: payload.note_ids.length }))
      emitAll = () => {
        typed({ text: 'a' }, { session_id: 's1', offset: 3, time: new Date(0) })
        added({ note_id: 'n1' })
      }
    }
  })
  const { connect, kernel } = await startTestKernel(t, { packs: [pack, stub(EventSubject, agents)] })
  const judge = schemaJudge(documentOf())
  const socket = await connect()
  await kernel.hub.open('s1')
  emitAll()
  const frames = {
    server_hello: await socket.next('server_hello'),
    'note.typed': await socket.next('note.typed'),
    'event.note.added': await socket.next('event.note.added'),
    watch_notes_ack: await socket.request('watch_notes', { note_ids: ['a'] }),
    subscribe_ack: await socket.request('subscribe', { session_ids: ['nobody'] }),
    unsubscribe_ack: await socket.request('unsubscribe', { session_ids: [] }),
    client_hello_ack: await socket.request('client_hello')
  }
  for (const [message, frame] of Object.entries(frames)) assert.equal(judge(payloadOf(message), frame), '', message)
  assert.equal(judge(payloadOf('watch_notes_ack'), await socket.request('watch_notes')), '', 'a failed request')
})
