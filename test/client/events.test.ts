/** The event stream of the client against a full server: cuts, restarts, lost text, a silent server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import {
  type Client,
  type ClientOptions,
  createClient,
  type SessionEvent,
  type Snapshot,
  type StreamState,
  unwrap
} from '../../client/index.ts'
import { WatchState } from '../../client/watch.ts'
import { rotateToken } from '../../kernel/access/token.ts'
import { latch } from '../helpers/latch.ts'
import { newSession, prompt, scene } from '../helpers/scene.ts'

/** What a consumer keeps of a session: durable events by number, and the text of the turn. */
class Kept {
  readonly seen: string[] = []
  text = ''
  snapshots = 0
  readonly ended = latch()

  readonly onEvent = (event: SessionEvent) => {
    if (event.type === 'turn.started') this.text = ''
    if (event.type === 'assistant.delta') {
      assert.equal(event.offset, this.text.length)
      this.text += event.payload.delta
    }
    if (!('volatile' in event)) this.seen.push(`${event.seq} ${event.type}`)
    if (event.type === 'prompt.completed') this.ended.open()
  }

  readonly onSnapshot = ({ in_flight_turn, messages, as_of_seq, session }: Snapshot) => {
    this.snapshots++
    const answers = messages.items.filter(one => one.role === 'assistant')
    const told = answers.flatMap(one => one.content).map(part => (part as { text?: string }).text ?? '')
    this.text = told.join('') + (in_flight_turn?.assistant_text ?? '')
    this.seen.push(`${as_of_seq} snapshot`)
    // The event that tells the end may be part of this state.
    if (this.snapshots > 1 && session.last_turn_reason === 'completed') this.ended.open()
  }
}

/** Clients whose sockets can be cut. */
function cuttable(options: ClientOptions): { client: Client; cut(): void; states: StreamState[]; lost: Promise<void> } {
  const states: StreamState[] = []
  const { opened: lost, open } = latch()
  const onState = (state: StreamState) => {
    states.push(state)
    if (state.state === 'waiting') open()
  }
  let last: WebSocket | undefined
  class Cuttable extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      last = this
    }
  }
  const client = createClient({ WebSocket: Cuttable as never, retryMs: [1, 5], onState, ...options })
  return { client, cut: () => last?.terminate(), states, lost }
}

test('a client whose connection is cut at random points of a streaming turn has every event once and the whole text', async t => {
  const whole = 'word and 🙂 '.repeat(60)
  const { page, cwd, server } = await scene(t, [[{ text: whole, chunks: 90, every_ms: 4 }]])
  const author = await page()
  const id = await newSession(author, cwd)
  const calm = createClient({ url: server.url, token: server.token })
  const { client, cut, states } = cuttable({ url: server.url, token: server.token })
  t.after(() => {
    calm.close()
    client.close()
  })
  const undisturbed = new Kept()
  const disturbed = new Kept()
  let frames = 0
  client.events.listen(() => {
    if (++frames % 4 === 0) cut()
  })
  const watches = [
    calm.events.watch(id, { onEvent: undisturbed.onEvent }),
    client.events.watch(id, { from: 'snapshot', onEvent: disturbed.onEvent, onSnapshot: disturbed.onSnapshot })
  ]
  await Promise.all(watches.map(watch => watch.ready))
  await prompt(author, id, 'talk')
  await Promise.all([undisturbed.ended.opened, disturbed.ended.opened])

  assert.equal(undisturbed.text, whole)
  assert.equal(disturbed.text, whole)
  assert.ok(states.filter(({ state }) => state === 'waiting').length > 2, 'it was cut')
  const numbers = disturbed.seen.filter(line => !line.endsWith('snapshot')).map(line => Number(line.split(' ')[0]))
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b)
  )
  // What is not there is in a snapshot.
  const last = Math.max(0, ...disturbed.seen.filter(line => line.endsWith('snapshot')).map(line => Number(line.split(' ')[0])))
  assert.deepEqual(
    undisturbed.seen.filter(line => Number(line.split(' ')[0]) > last),
    disturbed.seen.filter(line => Number(line.split(' ')[0]) > last && !line.endsWith('snapshot'))
  )
})

test('a client with a password of any characters asks and follows', async t => {
  const password = 'grüße (€1) 50%25/"x"'
  const { page, cwd, server } = await scene(t, [[{ text: 'first' }]], { password })
  const id = await newSession(await page(), cwd)
  const client = createClient({ url: server.url, token: password })
  t.after(() => client.close())
  await client.events.watch(id, { onEvent: () => undefined }).ready
  assert.equal((await unwrap(client.rest.GET('/api/v1/sessions/{session_id}', { params: { path: { session_id: id } } }))).id, id)
})

test('a watch from a snapshot begins with the state and goes on with what comes after it', async t => {
  const { page, cwd, server } = await scene(t, [[{ text: 'first' }], [{ text: 'second' }]])
  const author = await page()
  const id = await newSession(author, cwd)
  const done = author.next('prompt.completed')
  await author.openSession(id)
  await prompt(author, id, 'one')
  await done
  const { client } = cuttable({ url: server.url, token: server.token })
  t.after(() => client.close())
  const kept = new Kept()
  const watch = client.events.watch(id, { from: 'snapshot', onEvent: kept.onEvent, onSnapshot: kept.onSnapshot })
  await watch.ready
  assert.equal(kept.text, 'first')
  const from = watch.cursor
  await prompt(author, id, 'two')
  await kept.ended.opened
  assert.equal(kept.text, 'second')
  watch.close()

  const later = new Kept()
  const again = client.events.watch(id, { from: from!, onEvent: later.onEvent })
  await later.ended.opened
  assert.deepEqual(later.seen, kept.seen.slice(1))
  assert.deepEqual(again.cursor, watch.cursor)
})

test('a position that the server does not have any more is followed by a snapshot', async t => {
  const { page, cwd, server } = await scene(t, [[{ text: 'first' }]])
  const id = await newSession(await page(), cwd)
  const { client } = cuttable({ url: server.url, token: server.token })
  t.after(() => client.close())
  const kept = new Kept()
  const watch = client.events.watch(id, { from: { seq: 7, epoch: 'ep_of_before' }, onEvent: kept.onEvent, onSnapshot: kept.onSnapshot })
  await watch.ready
  assert.equal(kept.snapshots, 1)
  assert.notEqual(watch.cursor?.epoch, 'ep_of_before')
})

test('a session that does not exist is told to whoever waits for it, and a stream that is closed tells nothing any more', async t => {
  const { page, cwd, server } = await scene(t, [[{ text: 'first' }]])
  const author = await page()
  const id = await newSession(author, cwd)
  const { client, states } = cuttable({ url: server.url, token: server.token })
  await assert.rejects(client.events.watch('session_none', { onEvent: () => undefined }).ready, /session_none does not exist/)
  const kept = new Kept()
  await client.events.watch(id, { onEvent: kept.onEvent }).ready
  client.close()
  await author.post(`/api/v1/sessions/${id}/profile`, { title: 'New' })
  assert.deepEqual(kept.seen, [])
  assert.equal(states.at(-1)?.state, 'closed')
  await assert.rejects(client.events.watch(id, { onEvent: kept.onEvent }).ready, /is closed/)
})

/** A socket that answers when the test says so; what it was sent, by type. */
function scripted() {
  const sent: { readonly type: string; readonly id: string }[] = []
  let made = 0
  let closed = false
  let socket: Scripted | undefined
  const send = (frame: object) => socket?.onmessage?.({ data: JSON.stringify(frame) } as never)
  class Scripted {
    onopen = null
    onclose = null
    onerror = null
    onmessage: ((event: never) => void) | null = null
    constructor() {
      made++
      socket = this
      setImmediate(() => send({ type: 'server_hello', payload: {} }))
    }
    send(text: string) {
      sent.push(JSON.parse(text))
    }
    close() {
      closed = true
    }
  }
  const ack = ({ id }: { readonly id: string }, payload: object) => send({ type: 'ack', id, code: 0, msg: 'success', payload })
  return { Scripted: Scripted as never, sent, ack, made: () => made, closed: () => closed }
}

test('a watch that begins while the connection introduces itself is subscribed once', async t => {
  const { Scripted, sent, ack } = scripted()
  const client = createClient({ url: 'http://127.0.0.1:1', token: 'x', WebSocket: Scripted })
  t.after(() => client.close())
  client.events.listen(() => undefined)
  while (sent.length === 0) await new Promise(setImmediate)

  const watch = client.events.watch('session_a', { onEvent: () => undefined })
  ack(sent[0]!, {})
  while (!sent.some(({ type }) => type === 'subscribe')) await new Promise(setImmediate)
  ack(sent.at(-1)!, { not_found: [], resync_required: [], cursors: {} })
  await watch.ready

  assert.deepEqual(
    sent.map(({ type }) => type),
    ['client_hello', 'subscribe']
  )
})

test('a connection that introduces itself is closed with the stream', async () => {
  const { Scripted, sent, closed } = scripted()
  const client = createClient({ url: 'http://127.0.0.1:1', token: 'x', WebSocket: Scripted })
  client.events.listen(() => undefined)
  while (sent.length === 0) await new Promise(setImmediate)
  client.close()
  assert.equal(closed(), true)
})

test('a watch that is closed by whoever hears of it tells nothing more, and is subscribed no more', async t => {
  const { page, cwd, server } = await scene(t, [[{ text: 'first' }]])
  const author = await page()
  const id = await newSession(author, cwd)
  const done = author.next('prompt.completed')
  await author.openSession(id)
  await prompt(author, id, 'one')
  await done
  const sent: string[] = []
  class Told extends WebSocket {
    override send(data: unknown) {
      sent.push((JSON.parse(String(data)) as { type: string }).type)
      super.send(data as string)
    }
  }
  const client = createClient({ url: server.url, token: server.token, WebSocket: Told as never })
  t.after(() => client.close())
  const snapshot = await unwrap(client.rest.GET('/api/v1/sessions/{session_id}/snapshot', { params: { path: { session_id: id } } }))

  const replayed: string[] = []
  const first = client.events.watch(id, {
    from: { seq: 1, epoch: snapshot.epoch },
    onEvent: ({ type }) => {
      replayed.push(type)
      first.close()
    }
  })
  await first.ready.catch(() => undefined)
  const second = client.events.watch(id, { from: 'snapshot', onEvent: () => undefined, onSnapshot: () => second.close() })
  await assert.rejects(second.ready, /the watch is closed/)
  await client.events.watch(id, { onEvent: () => undefined }).ready

  assert.equal(replayed.length, 1)
  assert.deepEqual(sent, ['client_hello', 'subscribe', 'unsubscribe', 'unsubscribe', 'subscribe'])
})

test('a stream that is closed opens no connection', async () => {
  const { Scripted, made } = scripted()
  const told: string[] = []
  const options = { url: 'http://127.0.0.1:1', WebSocket: Scripted, onState: ({ state }: StreamState) => void told.push(state) }
  const token = latch<string>()
  const asking = createClient({ ...options, token: () => token.opened })
  asking.events.listen(() => undefined)
  asking.close()
  token.open('x')
  const closed = createClient({ ...options, token: 'x' })
  closed.close()
  closed.events.listen(() => undefined)
  for (let pass = 0; pass < 5; pass++) await new Promise(setImmediate)

  assert.equal(made(), 0)
  assert.deepEqual(told, ['connecting', 'closed', 'closed'])
})

test('a token that was replaced is asked for again, for requests and for the next connection', async t => {
  const { page, server, home, cwd } = await scene(t, [[{ text: 'first' }]])
  const id = await newSession(await page(), cwd)
  let token = server.token
  const { client, lost } = cuttable({ url: server.url, token: () => token })
  t.after(() => client.close())
  const kept = new Kept()
  const wait = latch()
  const onEvent = (event: SessionEvent) => {
    kept.onEvent(event)
    if (event.type === 'session.meta.updated') wait.open()
  }
  await client.events.watch(id, { onEvent }).ready
  token = await rotateToken(home)
  await lost
  const path = { session_id: id }
  await unwrap(client.rest.POST('/api/v1/sessions/{session_id}/profile', { params: { path }, body: { title: 'New' } }))
  await wait.opened
})

test('a server that says nothing for long, and does not answer either, counts as lost', async t => {
  const lost = latch()
  class Mute {
    onopen = null
    onclose = null
    onerror = null
    onmessage: ((event: never) => void) | null = null
    constructor() {
      setImmediate(() => this.onmessage?.({ data: '{"type":"server_hello","payload":{}}' } as never))
    }
    send(): void {}
    close(): void {}
  }
  const client = createClient({
    url: 'http://127.0.0.1:1',
    token: '',
    WebSocket: Mute,
    silenceMs: 5,
    onState: state => {
      if (state.state === 'waiting' && /nothing was heard/.test(state.reason)) lost.open()
    }
  })
  const alive = setInterval(() => undefined, 1000) // no socket keeps the process here
  t.after(() => {
    clearInterval(alive)
    client.close()
  })
  client.events.listen(() => undefined)
  await lost.opened
})

test('a client that slept asks first whether the server is there, and keeps its connection', async t => {
  const { server } = await scene(t, [])
  const asked = latch()
  class Counted extends WebSocket {
    override send(text: never): void {
      if (String(text).includes('unsubscribe')) asked.open()
      super.send(text)
    }
  }
  const states: string[] = []
  const open = latch()
  const client = createClient({
    url: server.url,
    token: server.token,
    WebSocket: Counted as never,
    silenceMs: 20,
    onState: ({ state }) => {
      states.push(state)
      if (state === 'open') open.open()
      if (state === 'waiting') asked.open()
    }
  })
  t.after(() => client.close())
  client.events.listen(() => undefined)
  await open.opened
  const awake = Date.now()
  t.mock.method(Date, 'now', () => awake + 3_600_000)
  await asked.opened
  assert.deepEqual(states, ['connecting', 'open'])
})

test('a stream that is closed while it connects lets go of its socket', async () => {
  const closed = latch()
  const made = latch()
  class Silent {
    onopen = null
    onclose = null
    onerror = null
    onmessage = null
    constructor() {
      made.open()
    }
    send() {}
    close() {
      closed.open()
    }
  }
  const told: string[] = []
  const client = createClient({
    url: 'http://127.0.0.1:1',
    token: 'x',
    WebSocket: Silent as never,
    onState: ({ state }) => void told.push(state)
  })
  client.events.listen(() => undefined)
  await made.opened
  client.close()
  await closed.opened
  for (let pass = 0; pass < 5; pass++) await new Promise(setImmediate)
  assert.deepEqual(told, ['connecting', 'closed'])
})

test('offsets per turn and per step both join, repetitions are cut off, and missing text asks for a snapshot', () => {
  let text = ''
  const state = new WatchState({
    onSnapshot: () => undefined,
    onEvent: event => {
      if (event.type === 'assistant.delta') text += event.payload.delta
    }
  })
  const at = { epoch: 'ep', session_id: 's', timestamp: '' }
  const who = { agentId: 'main', sessionId: 's', turnId: 0 }
  let seq = 0
  const delta = (offset: number, words: string) =>
    state.take({ ...at, seq, type: 'assistant.delta', volatile: true, offset, payload: { ...who, type: 'assistant.delta', delta: words } })
  const step = (number: number) =>
    state.take({ ...at, seq: ++seq, type: 'turn.step.started', payload: { ...who, type: 'turn.step.started', step: number } })
  state.take({ ...at, seq: ++seq, type: 'turn.started', payload: { ...who, type: 'turn.started', origin: { kind: 'user' } } })
  step(1)
  assert.ok(delta(0, 'one '))
  assert.ok(delta(2, 'e two '))
  assert.ok(delta(0, 'one'))
  assert.equal(text, 'one two ')
  assert.equal(delta(9, 'far'), false)
  step(2)
  assert.ok(delta(8, 'three '))
  step(3)
  assert.ok(delta(0, 'four'))
  assert.equal(text, 'one two three four')
})

test('text that a slow connection brings behind a snapshot which has it already is not told again', () => {
  const told: string[] = []
  const watch = new WatchState({ from: 'snapshot', onSnapshot: () => undefined, onEvent: ({ type }) => told.push(type) })
  const head = { epoch: 'e', session_id: 's', timestamp: 't' }
  const delta = (seq: number, turnId: number) =>
    ({
      ...head,
      type: 'assistant.delta',
      seq,
      volatile: true,
      offset: 0,
      payload: { agentId: 'main', turnId, delta: 'text' }
    }) as SessionEvent
  watch.hold()
  watch.rebuild({ as_of_seq: 9, epoch: 'e', in_flight_turn: null } as unknown as Snapshot) // what it looks at
  watch.take(delta(7, 0))
  assert.equal(watch.join(undefined, false), true)
  watch.take(delta(8, 0))
  assert.deepEqual(told, [])
  watch.take(delta(9, 1))
  assert.deepEqual(told, ['assistant.delta'])
})

test('text that came while a snapshot was on its way is told as far as that does not have it', () => {
  const told: [string, number | undefined][] = []
  const watch = new WatchState({
    from: 'snapshot',
    onSnapshot: () => undefined,
    onEvent: frame => told.push([(frame.payload as { delta: string }).delta, 'offset' in frame ? frame.offset : undefined])
  })
  const delta = (offset: number, text: string, epoch = 'e', turnId = 1) =>
    ({
      epoch,
      session_id: 's',
      timestamp: 't',
      type: 'assistant.delta',
      seq: 9,
      volatile: true,
      offset,
      payload: { agentId: 'main', turnId, delta: text }
    }) as SessionEvent
  watch.hold()
  for (const frame of [delta(0, 'of another epoch', 'd', 0), delta(0, 'ab'), delta(2, 'cd'), delta(4, 'ef')]) watch.take(frame)
  const in_flight_turn = { turn_id: 1, assistant_offset: 0, assistant_text: 'abc', thinking_offset: 0, thinking_text: '' }
  watch.rebuild({ as_of_seq: 9, epoch: 'e', in_flight_turn } as unknown as Snapshot) // what it looks at

  assert.equal(watch.join(undefined, false), true)
  assert.deepEqual(told, [
    ['d', 3],
    ['ef', 4]
  ])
})

test('a replay that brings the end of a step asks for a snapshot when text of it is missing, and only then', () => {
  const missing = (length: number) => {
    const watch = new WatchState({ from: 'snapshot', onSnapshot: () => undefined, onEvent: () => undefined })
    const head = { epoch: 'e', session_id: 's', timestamp: 't' }
    const payload = { agentId: 'main', turnId: 1 }
    const over = { ...head, type: 'turn.step.completed', seq: 4, payload: { ...payload, assistantEnd: 5 } } as SessionEvent
    const in_flight_turn = { turn_id: 1, assistant_offset: 0, assistant_text: 'x'.repeat(length), thinking_offset: 0, thinking_text: '' }
    watch.hold()
    watch.rebuild({ as_of_seq: 3, epoch: 'e', in_flight_turn } as unknown as Snapshot) // what it looks at
    watch.take(over)
    return !watch.join(undefined, false)
  }
  assert.deepEqual([missing(5), missing(3)], [false, true])
})

test('text of steps that end faster than snapshots come is made up for at the end of the turn', () => {
  const told: string[] = []
  const watch = new WatchState({ from: 'snapshot', onSnapshot: () => told.push('snapshot'), onEvent: ({ type }) => told.push(type) })
  const event = (seq: number, type: string) =>
    ({ epoch: 'e', session_id: 's', timestamp: 't', type, seq, payload: { agentId: 'main', turnId: 0 } }) as SessionEvent
  const rebuild = (as_of_seq: number) => watch.rebuild({ as_of_seq, epoch: 'e', in_flight_turn: null } as unknown as Snapshot) // what it looks at
  const over = event(4, 'turn.step.completed')
  watch.hold()
  rebuild(3)
  watch.take({ ...over, payload: { ...over.payload, assistantEnd: 9 } } as SessionEvent)
  assert.equal(watch.join(undefined, false), false)
  assert.equal(watch.join(undefined, true), true)
  assert.equal(watch.take(event(5, 'turn.step.started')), true)
  assert.equal(watch.take(event(6, 'turn.ended')), false)
  rebuild(6)
  assert.equal(watch.take(event(7, 'turn.ended')), true)
  assert.deepEqual(told, ['snapshot', 'turn.step.completed', 'turn.step.started', 'turn.ended', 'snapshot', 'turn.ended'])
})

test('a snapshot that cannot be had for a moment is asked for again: the watch goes on', async t => {
  const { page, cwd, server } = await scene(t, [[{ text: 'first' }]])
  const id = await newSession(await page(), cwd)
  let refused = 0
  const { client } = cuttable({
    url: server.url,
    token: server.token,
    retryMs: [1, 5],
    fetch: request => (refused++ < 2 ? Promise.reject(new TypeError('fetch failed')) : fetch(request))
  })
  const kept = new Kept()
  await client.events.watch(id, { from: 'snapshot', onEvent: kept.onEvent, onSnapshot: kept.onSnapshot }).ready
  assert.deepEqual([kept.snapshots, refused], [1, 3])
  client.close()
})
