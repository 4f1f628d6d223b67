/** Who gets an event, and when. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SharedEvent } from '../../kernel/elsewhere.ts'
import { defineEvent, Type } from '../../kernel/index.ts'
import type { ClientConnection } from '../../kernel/realtime/connection.ts'
import { draftEvent, numberFrame } from '../../kernel/realtime/event-frame.ts'
import { Fanout } from '../../kernel/realtime/fanout.ts'
import { testEnvironment } from '../../kernel/testing.ts'

const payload = Type.Object({ text: Type.String() })
const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload })
const typed = defineEvent({ type: 'note.delta', scope: 'session', durable: false, payload })

interface Facts {
  readonly spec?: typeof typed | typeof noted
  readonly only?: ClientConnection
  readonly everyone?: boolean
}

function frame(text: string, { spec = typed, everyone = false, ...target }: Facts = {}) {
  const about = { subject: 'main', at: new Date(0), rule: undefined }
  const sent = everyone ? { ...spec, deliver: 'everyone' as const } : spec
  return numberFrame(draftEvent(sent, { text }, { session_id: 's1', ...target }, about), 1, 'e')
}

/** A connection that writes down the texts of its frames. */
function receiver({ wants = true, awaitsReplay = false } = {}) {
  const got: unknown[] = []
  const client = {
    wants: () => wants,
    broadcast: ({ durable, frame }: SharedEvent) => void ((durable && awaitsReplay) || client.write(frame)),
    write: (bytes: Buffer) => void got.push((JSON.parse(bytes.toString('utf8')) as { payload: { text: unknown } }).payload.text)
  }
  return { got, client: client as unknown as ClientConnection } // of which a fan-out uses these
}

function scene() {
  const fanout = new Fanout(testEnvironment())
  const one = receiver()
  fanout.subscribe('s1', one.client)
  return { fanout, one }
}

test('who leaves gets what was handed over before, who comes does not', () => {
  const { fanout, one } = scene()
  const late = receiver()
  fanout.deliver(frame('first'))
  fanout.subscribe('s1', late.client)
  fanout.deliver(frame('second'))
  fanout.unsubscribe('s1', one.client)
  fanout.deliver(frame('third'))
  fanout.unsubscribe('s1', late.client)
  assert.deepEqual([one.got, late.got, fanout.subscribers('s1')], [['first', 'second'], ['second', 'third'], 0])
})

test('what is for one client comes behind what it was handed before, and only to a subscriber that wants it', () => {
  const { fanout, one } = scene()
  const [other, picky, stranger] = [receiver(), receiver({ wants: false }), receiver()]
  for (const { client } of [other, picky]) fanout.subscribe('s1', client)
  fanout.deliver(frame('all'))
  for (const { client } of [one, picky, stranger]) fanout.deliver(frame('yours', { only: client }))
  assert.deepEqual([one.got, other.got, picky.got, stranger.got], [['all', 'yours'], ['all'], [], []])
})

test('while a client waits for its replay it gets what is for everyone and volatile, and nothing durable, which the replay has', () => {
  const { fanout, one } = scene()
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
