/** What one client has at another server, with messages that come together as a busy machine brings them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Place, Unreached } from '../../../features/peers/owner.ts'
import { ClientRemote } from '../../../features/peers/remote.ts'
import {
  type Cursor,
  type RelayedClient,
  type RemoteClient,
  SessionMoved,
  type StandingFrame,
  type SubscribeWish
} from '../../../kernel/index.ts'

const session_id = 'session_1'
const epoch = 'ep_1'

interface Asked {
  readonly id: string
  readonly type: string
  readonly payload: {
    readonly cursors?: Record<string, Cursor>
    readonly subjects?: Record<string, readonly string[]>
    readonly standing?: unknown
  }
}

/** The other server, as the script of a test answers: what is told in one go comes in one pass of the event loop. */
class Other {
  readonly asked: Asked[] = []
  readonly place: Place
  #client: RelayedClient | undefined
  #waiting: (() => void)[] = []

  constructor(id: string) {
    this.place = {
      id,
      relay: () => Promise.reject(new Unreached()),
      connect: client => {
        this.#client = client
        return Promise.resolve({
          send: data => {
            this.asked.push(JSON.parse(Buffer.from(data).toString('utf8')) as Asked)
            for (const resolve of this.#waiting.splice(0)) resolve()
          },
          close: () => undefined
        })
      }
    }
  }

  async next(count: number): Promise<Asked> {
    while (this.asked.length < count) await new Promise<void>(resolve => this.#waiting.push(resolve))
    return this.asked[count - 1]!
  }

  tell(frame: object): void {
    this.#client?.message(Buffer.from(JSON.stringify(frame)), false)
  }

  event(seq: number): void {
    this.tell({ type: 'prompt.submitted', seq, epoch, session_id, timestamp: '2026-01-01T00:00:00.000Z', payload: {} })
  }

  accept({ id }: Asked, seq: number): void {
    const payload = { accepted: [session_id], not_found: [], resync_required: [], cursors: { [session_id]: { seq, epoch } } }
    this.tell({ type: 'ack', id, code: 0, msg: 'success', payload })
  }

  end(): void {
    this.#client?.closed(1006, '')
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

function scene(first: Other, then: Other, standing: readonly StandingFrame[] = []) {
  const got: string[] = []
  let at = first
  const client: RemoteClient = {
    open: true,
    writable: true,
    principal: { id: 'p', scopes: [] } as never,
    info: () => ({ remote_address: null, user_agent: null }),
    drained: () => Promise.resolve(),
    write: bytes => {
      const { type, seq } = JSON.parse(bytes.toString('utf8')) as { type: string; seq?: number }
      got.push(`${type} ${seq}`)
    },
    tell: ({ seq }) => void got.push(`told ${seq}`),
    takes: () => true,
    shut: () => undefined,
    subscribed: () => false,
    standing: () => standing,
    await: () => undefined,
    giveUp: () => undefined
  }
  let resynced = () => {}
  const told = new Promise<void>(resolve => {
    resynced = resolve
  })
  const remote: ClientRemote = new ClientRemote(client, {
    filterField: () => 'subjects',
    once: () => undefined,
    subscribe: (id, wish) => {
      at = then
      return remote.subscribe(at.place, id, wish)
    },
    resync: (_id, reason, where) => {
      got.push(`resync ${reason} at ${where?.seq}`)
      resynced()
    }
  })
  return { remote, got, told }
}

test('a client that is told to resync after its server went is told where the session is by then, not where it was when it subscribed', async () => {
  const [dead, next] = [new Other('a'), new Other('b')]
  const { remote, got, told } = scene(dead, next)
  const subscribed = remote.subscribe(dead.place, session_id, { cursor: { seq: 3, epoch } })
  dead.accept(await dead.next(1), 3)
  await subscribed
  dead.end()
  const again = await next.next(1)
  assert.deepEqual(again.payload.cursors, { [session_id]: { seq: 3, epoch } })
  next.event(4)
  next.accept(again, 4)
  next.event(5)
  next.event(6)
  await told
  assert.deepEqual(got, ['prompt.submitted 4', 'prompt.submitted 5', 'prompt.submitted 6', 'resync buffer_overflow at 6'])
})

test('frames that stand go with the subscription to the next server, and ask for no resync', async () => {
  const [dead, next] = [new Other('a'), new Other('b')]
  const follow = { type: 'follow', payload: { session_id } }
  const { remote, got } = scene(dead, next, [{ ...follow, stands: 'anew' }])
  const asked = remote.ask(dead.place, session_id, { ...follow, subscribes: true, stands: 'anew' })
  dead.accept(await dead.next(1), 3)
  await asked
  dead.end()
  const again = await next.next(1)
  assert.deepEqual(
    [again.type, again.payload.cursors, again.payload.standing],
    ['subscribe', { [session_id]: { seq: 3, epoch } }, [{ ...follow, stands: 'anew' }]]
  )
  next.accept(again, 3)
  await turn()
  next.event(4)
  assert.deepEqual(got, ['prompt.submitted 4'])
})

test('a client hears that what it asked for is gone when its server ends right behind the answer', async () => {
  const dead = new Other('a')
  const { remote, got } = scene(dead, dead)
  const answered = remote.ask(dead.place, session_id, { type: 'terminal_attach', payload: { session_id } })
  const { id } = await dead.next(1)
  dead.tell({ type: 'ack', id, code: 0, msg: 'success', payload: {} })
  dead.end()
  assert.equal((await answered).code, 0)
  assert.deepEqual(got, ['resync buffer_overflow at 0'])
})

test('a subscription whose server ends within the replay leaves what comes after the last event, with its filter', async () => {
  const dead = new Other('a')
  const { remote } = scene(dead, dead)
  const first = remote.subscribe(dead.place, session_id, { cursor: { seq: 3, epoch }, filter: ['main'] })
  dead.accept(await dead.next(1), 3)
  await first
  const wish: SubscribeWish = { cursor: { seq: 3, epoch } }
  const second = remote.subscribe(dead.place, session_id, wish)
  await dead.next(2)
  dead.event(4)
  dead.event(5)
  dead.end()
  await assert.rejects(second, Unreached)
  assert.deepEqual(wish, { filter: ['main'], cursor: { seq: 5, epoch }, more: false })
})

test('what a server says that has lost the session was not done there', async () => {
  const other = new Other('a')
  const { remote } = scene(other, other)
  for (const subscribes of [false, true]) {
    const asked = remote.ask(other.place, session_id, { type: 'terminal_attach', payload: { session_id }, subscribes })
    const { id } = await other.next(subscribes ? 2 : 1)
    other.tell({ type: 'ack', id, code: 50005, msg: 'moved', payload: {} })
    await assert.rejects(asked, Unreached)
    assert.equal(remote.has(session_id), false)
  }
})

test('a frame that subscribes is a subscription when its answer says so, and not before', async () => {
  const other = new Other('a')
  const { remote } = scene(other, other)
  const frame = { type: 'subscribe_more', payload: { session_id }, subscribes: true }
  const refused = remote.ask(other.place, session_id, frame)
  const { id } = await other.next(1)
  other.tell({ type: 'ack', id, code: 40001, msg: 'no', payload: {} })
  assert.equal((await refused).code, 40001)
  assert.deepEqual(remote.sessions(), [])

  const accepted = remote.ask(other.place, session_id, frame)
  other.accept(await other.next(2), 7)
  assert.equal((await accepted).code, 0)
  assert.deepEqual(remote.sessions(), [session_id])
  const left = remote.unsubscribe(session_id)
  const { id: unsubscribing, type } = await other.next(3)
  other.tell({ type: 'ack', id: unsubscribing, code: 0, msg: 'success', payload: {} })
  await left
  assert.deepEqual([type, remote.sessions()], ['unsubscribe', []])
})

test('a frame that subscribes for more is asked again where the session is when its server ends before it answers; others may have been done', async () => {
  for (const subscribes of [true, false]) {
    const [dead, next] = [new Other('a'), new Other('b')]
    const { remote } = scene(dead, next)
    const subscribed = remote.subscribe(dead.place, session_id, { cursor: { seq: 3, epoch } })
    dead.accept(await dead.next(1), 3)
    await subscribed
    const asked = remote.ask(dead.place, session_id, { type: 'any', payload: { session_id }, subscribes })
    await dead.next(2)
    dead.end()
    await assert.rejects(asked, subscribes ? Unreached : { code: 50005 })
  }
})

test('who subscribed with more than events goes on at the next server, and is told to ask for the rest anew', async () => {
  const [dead, next] = [new Other('a'), new Other('b')]
  const { remote, got, told } = scene(dead, next)
  const asked = remote.ask(dead.place, session_id, { type: 'subscribe_more', payload: { session_id }, subscribes: true })
  dead.accept(await dead.next(1), 7)
  await asked
  dead.event(8)
  dead.end()
  const again = await next.next(1)
  assert.deepEqual([again.type, again.payload.cursors], ['subscribe', { [session_id]: { seq: 8, epoch } }])
  next.accept(again, 8)
  await told
  assert.deepEqual(got, ['prompt.submitted 8', 'resync buffer_overflow at 8'])
})

test('events that came before a frame which subscribes was answered are not left without a word when its server ends', async () => {
  const dead = new Other('a')
  const { remote, got } = scene(dead, dead)
  const asked = remote.ask(dead.place, session_id, { type: 'subscribe_more', payload: { session_id }, subscribes: true })
  await dead.next(1)
  dead.event(4)
  dead.end()
  await assert.rejects(asked, Unreached)
  assert.deepEqual(got, ['prompt.submitted 4', 'resync buffer_overflow at 0'])
})

test('a session that is followed wherever it goes is left where it was', async () => {
  const [before, next] = [new Other('a'), new Other('b')]
  const { remote, got, told } = scene(before, next)
  const subscribed = remote.subscribe(before.place, session_id, { cursor: { seq: 3, epoch }, filter: ['main'] })
  before.accept(await before.next(1), 3)
  await subscribed
  const attached = remote.ask(before.place, session_id, { type: 'terminal_attach', payload: { session_id } })
  const { id } = await before.next(2)
  before.tell({ type: 'ack', id, code: 0, msg: 'success', payload: {} })
  await attached
  remote.follow(session_id, {})
  assert.equal((await before.next(3)).type, 'unsubscribe')
  const again = await next.next(1)
  assert.deepEqual(again.payload, {
    session_ids: [session_id],
    cursors: { [session_id]: { seq: 3, epoch } },
    subjects: { [session_id]: ['main'] }
  })
  next.accept(again, 3)
  await told
  assert.deepEqual(got, ['resync buffer_overflow at 3'])
})

test('an event that reaches everyone comes once, whichever way it comes first, and in order', async () => {
  const other = new Other('a')
  const { remote, got } = scene(other, other)
  const offer = (seq: number, durable = true) =>
    remote.offer({ scope: 'session', type: 'session.meta.updated', session_id, seq, durable, frame: Buffer.from('{}') })
  offer(1)
  const subscribed = remote.subscribe(other.place, session_id, {})
  const asked = await other.next(1)
  for (const seq of [2, 3, 4]) offer(seq)
  offer(4, false)
  assert.deepEqual(got, ['told 1'])
  other.accept(asked, 3)
  await subscribed
  assert.deepEqual(got, ['told 1', 'told 2', 'told 3']) // the fourth comes by the subscription
  other.event(4)
  offer(5)
  offer(3)
  assert.deepEqual(got.slice(3), ['prompt.submitted 4'])
})

test('who unsubscribes hears each event that reaches everyone once, on whichever way it comes meanwhile', async () => {
  const other = new Other('a')
  const { remote, got } = scene(other, other)
  const offer = (seq: number, of = epoch) => {
    const frame = Buffer.from(`{"type":"x","seq":${seq},"epoch":"${of}","session_id":"${session_id}","timestamp":"","payload":{}}`)
    remote.offer({ scope: 'session', type: 'x', session_id, seq, durable: true, frame })
  }
  const subscribed = remote.subscribe(other.place, session_id, {})
  other.accept(await other.next(1), 1)
  await subscribed
  other.event(2)
  offer(3)
  const left = remote.unsubscribe(session_id)
  const { id } = await other.next(2)
  for (const seq of [2, 4, 5]) offer(seq)
  other.event(3)
  other.event(4)
  assert.deepEqual(got, ['prompt.submitted 2', 'prompt.submitted 3', 'prompt.submitted 4'])
  other.tell({ type: 'ack', id, code: 0, msg: 'success', payload: {} })
  await left
  assert.deepEqual(got.splice(0).slice(3), ['told 5']) // only now it is known that the subscription does not bring it
  for (const seq of [3, 4, 6]) offer(seq)
  offer(1, 'ep_2')
  assert.deepEqual(got, ['told 6', 'told 1'])
})

test('a subscription that goes to another server while the first still has something to say goes on after the last event', async () => {
  const [slow, next] = [new Other('a'), new Other('b')]
  const { remote, got } = scene(slow, next)
  const first = remote.subscribe(slow.place, session_id, { cursor: { seq: 3, epoch }, filter: ['main'] })
  slow.accept(await slow.next(1), 3)
  await first
  slow.event(4)
  const wish: SubscribeWish = {}
  const second = remote.subscribe(next.place, session_id, wish)
  const again = await next.next(1)
  assert.deepEqual(again.payload.cursors, { [session_id]: { seq: 4, epoch } })
  assert.deepEqual([again.payload.subjects, wish.more], [{ [session_id]: ['main'] }, true]) // it is told that other things are gone
  slow.event(5)
  slow.tell({ type: 'resync_required', payload: { session_id, current_seq: 5, epoch } })
  next.event(5)
  next.accept(again, 5)
  await second
  slow.event(6)
  slow.end()
  next.event(6)
  assert.deepEqual(got, ['prompt.submitted 4', 'prompt.submitted 5', 'prompt.submitted 6'])
  assert.equal((await slow.next(2)).type, 'unsubscribe')
})

test('a session that has come here leaves what was subscribed of it elsewhere, and what that still says', async () => {
  const other = new Other('a')
  const { remote, got } = scene(other, other)
  const subscribed = remote.subscribe(other.place, session_id, { cursor: { seq: 3, epoch }, filter: ['main'] })
  other.accept(await other.next(1), 3)
  await subscribed
  other.event(4)
  const wish: SubscribeWish = {}
  await remote.handOver(session_id, wish)
  other.event(5)
  assert.deepEqual(wish, { filter: ['main'], cursor: { seq: 4, epoch }, more: true, moved: true })
  assert.equal(remote.has(session_id), false)
  assert.deepEqual(got, ['prompt.submitted 4'])
})

test('a subscription that is asked for while the first one loses its server comes behind what makes up for that, and is the last', async () => {
  const [dead, next] = [new Other('a'), new Other('b')]
  const { remote, got } = scene(dead, next)
  const first = remote.subscribe(dead.place, session_id, { cursor: { seq: 3, epoch } })
  dead.accept(await dead.next(1), 3)
  await first
  dead.event(4)
  const second = remote.subscribe(next.place, session_id, { cursor: { seq: 3, epoch } })
  dead.end()
  const goingOn = await next.next(1)
  assert.deepEqual(goingOn.payload.cursors, { [session_id]: { seq: 4, epoch } })
  next.accept(goingOn, 4)
  const asked = await next.next(2)
  assert.deepEqual(asked.payload.cursors, { [session_id]: { seq: 3, epoch } })
  next.event(4)
  next.accept(asked, 4)
  await second
  next.event(5)
  assert.deepEqual(got, ['prompt.submitted 4', 'prompt.submitted 4', 'prompt.submitted 5'])
  assert.equal(next.asked.length, 2)
})

test('a frame that meets a subscription which has lost its server waits for that', async () => {
  const [dead, next] = [new Other('a'), new Other('b')]
  const { remote } = scene(dead, next)
  const subscribed = remote.subscribe(dead.place, session_id, { cursor: { seq: 3, epoch } })
  dead.accept(await dead.next(1), 3)
  await subscribed
  const asked = remote.ask(next.place, session_id, { type: 'subscribe_more', payload: { session_id }, subscribes: true })
  dead.end()
  await assert.rejects(asked, SessionMoved)
  assert.equal((await next.next(1)).type, 'subscribe')
})

test('a frame about a session that has moved on takes the subscription there first', async () => {
  const [before, next] = [new Other('a'), new Other('b')]
  const { remote, got, told } = scene(before, next)
  const subscribed = remote.subscribe(before.place, session_id, { cursor: { seq: 3, epoch } })
  before.accept(await before.next(1), 3)
  await subscribed
  const frame = { type: 'subscribe_more', payload: { session_id }, subscribes: true }
  await assert.rejects(remote.ask(next.place, session_id, frame), SessionMoved)
  const again = await next.next(1)
  assert.deepEqual([again.type, again.payload.cursors], ['subscribe', { [session_id]: { seq: 3, epoch } }])
  next.event(4)
  next.accept(again, 4)
  await told
  assert.deepEqual(got, ['prompt.submitted 4', 'resync buffer_overflow at 4'])
})

test('what was held for a subscription that is refused goes out', async () => {
  const other = new Other('a')
  const { remote, got } = scene(other, other)
  const subscribed = remote.subscribe(other.place, session_id, {})
  const { id } = await other.next(1)
  remote.offer({ scope: 'session', type: 'x', session_id, seq: 2, durable: true, frame: Buffer.from('{}') })
  other.tell({ type: 'ack', id, code: 0, msg: 'success', payload: { accepted: [], not_found: [session_id] } })
  assert.deepEqual(await subscribed, { found: false, resync: false, mark: undefined })
  assert.deepEqual(got, ['told 2'])
})
