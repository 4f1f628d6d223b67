/** Who gets an event, when, and with which of its neighbours in one frame. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { SharedEvent } from '../../kernel/elsewhere.ts'
import { defineEvent, Type } from '../../kernel/index.ts'
import type { ClientConnection } from '../../kernel/realtime/connection.ts'
import { draftEvent, numberFrame } from '../../kernel/realtime/event-frame.ts'
import { Fanout } from '../../kernel/realtime/fanout.ts'
import { testEnvironment } from '../../kernel/testing.ts'

const payload = Type.Object({ text: Type.Unknown(), of: Type.Optional(Type.String()) })
const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload })
const typed = defineEvent({ type: 'note.delta', scope: 'session', durable: false, payload, merge: { by: ['of'], append: 'text' } })
const drawn = defineEvent({ type: 'note.drawn', scope: 'session', durable: false, payload, merge: { by: ['of'], append: 'text' } })

interface Facts {
  readonly spec?: typeof typed | typeof drawn | typeof noted
  readonly subject?: string
  readonly seq?: number
  readonly epoch?: string
  readonly offset?: number
  readonly of?: string
  readonly only?: ClientConnection
  readonly everyone?: boolean
}

function frame(text: unknown, { spec = typed, subject = 'main', seq = 1, epoch = 'e', of, everyone = false, ...target }: Facts = {}) {
  const about = { pack: 'test', everyone, subject, at: new Date(0), rule: undefined }
  return numberFrame(draftEvent(spec, { text, ...(of === undefined ? {} : { of }) }, { session_id: 's1', ...target }, about), seq, epoch)
}

/** A connection that writes down the texts of its frames. */
function receiver({ wants = true, awaitsReplay = false } = {}) {
  const got: unknown[] = []
  const client = {
    wants: () => wants,
    broadcast: ({ durable, frame }: SharedEvent) => void ((durable && awaitsReplay) || client.write(frame)),
    cork: () => undefined,
    uncork: () => undefined,
    write: (bytes: Buffer) => void got.push((JSON.parse(bytes.toString('utf8')) as { payload: { text: unknown } }).payload.text)
  }
  return { got, client: client as unknown as ClientConnection } // of which a fan-out uses these
}

/** Nothing leaves by itself but when the test lets the clock go on. */
function scene(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  const fanout = new Fanout(testEnvironment())
  const one = receiver()
  fanout.subscribe('s1', one.client)
  return { fanout, one, endOfTick: () => t.mock.timers.tick(0), after: (ms: number) => t.mock.timers.tick(ms) }
}

test('who leaves gets what was handed over before, who comes does not', t => {
  const { fanout, one } = scene(t)
  const late = receiver()
  fanout.deliver(frame('first'))
  fanout.subscribe('s1', late.client)
  fanout.deliver(frame('second'))
  fanout.unsubscribe('s1', one.client)
  fanout.deliver(frame('third'))
  fanout.end('s1')
  assert.deepEqual([one.got, late.got, fanout.subscribers('s1')], [['first', 'second'], ['second', 'third'], 0])
})

test('what is for one client comes behind what it was handed before, and only to a subscriber that wants it', t => {
  const { fanout, one } = scene(t)
  const [other, picky, stranger] = [receiver(), receiver({ wants: false }), receiver()]
  for (const { client } of [other, picky]) fanout.subscribe('s1', client)
  fanout.deliver(frame('all'))
  for (const { client } of [one, picky, stranger]) fanout.deliver(frame('yours', { only: client }))
  assert.deepEqual([one.got, other.got, picky.got, stranger.got], [['all', 'yours'], ['all'], [], []])
})

test('while a client waits for its replay it gets what is for everyone and volatile, and nothing durable, which the replay has', t => {
  const { fanout, one } = scene(t)
  const [replaying, idle] = [receiver({ awaitsReplay: true }), receiver()]
  for (const { client } of [one, replaying, idle]) fanout.connections.add(client)
  fanout.deliver(frame('before'))
  fanout.deliver(frame('kept', { spec: noted, everyone: true }))
  fanout.deliver(frame('passing', { everyone: true }))
  fanout.connections.delete(idle.client)
  fanout.deliver(frame('later', { everyone: true }))
  assert.deepEqual(
    [one.got, replaying.got, idle.got],
    [
      ['before', 'kept', 'passing', 'later'],
      ['passing', 'later'],
      ['kept', 'passing']
    ]
  )
})

test('a quiet stream leaves at the end of the tick, four times within 16 ms; after that it waits for the end of the window', t => {
  const { fanout, one, endOfTick, after } = scene(t)
  for (let n = 1; n <= 4; n++) {
    fanout.deliver(frame(n, { spec: noted }))
    assert.equal(one.got.length, n - 1)
    endOfTick()
    assert.equal(one.got.length, n)
  }
  fanout.deliver(frame(5, { spec: noted }))
  endOfTick()
  assert.equal(one.got.length, 4)
  after(16)
  assert.equal(one.got.length, 5)
  after(16)
  fanout.deliver(frame(6, { spec: noted }))
  endOfTick()
  assert.equal(one.got.length, 6)
})

test('the 64th frame waits for nobody', t => {
  const { fanout, one } = scene(t)
  for (let n = 1; n <= 63; n++) fanout.deliver(frame(n, { spec: noted }))
  assert.equal(one.got.length, 0)
  fanout.deliver(frame(64, { spec: noted }))
  assert.equal(one.got.length, 64)
})

const pairs: readonly (readonly [string, first: Facts, second: Facts, text?: unknown])[] = [
  ['another subject', {}, { subject: 'child' }],
  ['another epoch', {}, { epoch: 'f' }],
  ['a durable event in between', {}, { seq: 2 }],
  ['another event', {}, { spec: drawn }],
  ['another value of a key', { of: 'a' }, { of: 'b' }],
  ['a text that does not follow', { offset: 0 }, { offset: 4 }],
  ['a text that was told before', { offset: 5 }, { offset: 5 }],
  ['an offset behind a text without one', {}, { offset: 3 }],
  ['a text without an offset behind one with it', { offset: 0 }, {}],
  ['something else than a text', {}, {}, 7],
  ['a durable event', { spec: noted }, {}]
]
test('texts that follow each other are one frame, but for:', async t => {
  for (const [what, first, second, text = 'two'] of pairs) {
    await t.test(what, t => {
      const { fanout, one } = scene(t)
      fanout.deliver(frame('one', first))
      fanout.deliver(frame(text, second))
      fanout.flush()
      assert.deepEqual(one.got, ['one', text])
    })
  }
})

test('three texts in a row are one, each behind the last', t => {
  const { fanout, one } = scene(t)
  for (const [text, offset] of [
    ['one', 10],
    ['four', 13],
    ['six', 17],
    ['gap', 21]
  ] as const)
    fanout.deliver(frame(text, { offset, of: 'a' }))
  for (const text of ['a', 'b', 'c']) fanout.deliver(frame(text))
  fanout.end('s1')
  assert.deepEqual(one.got, ['onefoursix', 'gap', 'abc'])
})
