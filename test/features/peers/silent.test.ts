/** Sessions whose server is there and says nothing, among others that a client asks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Peers } from '../../../features/peers/index.ts'
import { type Place, Unreached } from '../../../features/peers/owner.ts'
import { definePack } from '../../../kernel/index.ts'
import type { Frame, SocketClient, TestKernel } from '../../../kernel/testing.ts'
import { randomSource } from '../../helpers/random.ts'
import { kernels, newSession, prompt, until } from './kernels.ts'

const timeout = 60_000

/** Two servers; to the second one the other says nothing about the sessions that are `silent`. */
async function scene(t: Parameters<typeof kernels>[0]) {
  const silent = new Set<string>()
  const hang = () => Promise.reject(new Unreached(undefined, true))
  const place: Place = { id: 'silent', relay: hang, connect: hang }
  const taps: (() => void)[] = []
  const silence = definePack({
    name: 'silence',
    needs: { peers: Peers },
    setup(ctx, { peers }) {
      taps.push(() => ctx.tap(peers.owner, async id => (silent.has(id) ? place : undefined), { stage: -1 }))
    }
  })
  const { servers, cwd } = await kernels(t, () => [{ text: 'Hello.' }], 2, [silence])
  const [first, second] = servers as [TestKernel, TestKernel]
  taps[1]!()
  const work = async (id: string) => {
    const prompt_id = await prompt(first, id, 'hi')
    await first.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId?: string }).promptId === prompt_id)
    return prompt_id
  }
  return { first, second, silent, cwd, work }
}

const durable = ({ frames }: SocketClient, id: string) =>
  frames.filter(frame => frame.session_id === id && frame.seq !== undefined && !frame.volatile)
const seqs = (client: SocketClient, id: string) => durable(client, id).map(({ seq }) => seq)
const upTo = (last: number | undefined, first = 1) => Array.from({ length: (last ?? 0) - first + 1 }, (_, at) => first + at)
const resyncOf = (id: string) => (frame: Frame) => frame.type === 'resync_required' && frame.payload.session_id === id

async function listed({ rest }: TestKernel): Promise<string[]> {
  const { data } = await rest.json('GET', '/api/v1/connections')
  return (data as { connections: { subscriptions: string[] }[] }).connections.flatMap(({ subscriptions }) => subscriptions)
}

test('one silent server among the sessions of a client_hello takes nothing from the others, and its session follows', {
  timeout
}, async t => {
  const { first, second, silent, cwd, work } = await scene(t)
  const [mine, live, hung] = [await newSession(second, cwd), await newSession(first, cwd), await newSession(first, cwd)]
  silent.add(hung)
  await work(hung)
  const client = await second.connect()
  const ids = [hung, mine, 'session_nobody', live]
  const cursors = Object.fromEntries(ids.slice(0, 2).map(id => [id, { seq: 0 }]))
  const { code, payload } = await client.request('client_hello', { subscriptions: ids, cursors })

  assert.equal(code, 0)
  assert.deepEqual(
    [payload.accepted_subscriptions, payload.not_found, payload.resync_required],
    [[hung, mine, live], ['session_nobody'], ['session_nobody']]
  )
  assert.deepEqual(Object.keys(payload.cursors).sort(), [mine, live].sort())
  assert.deepEqual(await listed(second), [hung, mine, live].sort())
  const in_live = await work(live)
  await client.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === in_live)
  await work(hung) // what it tells everyone on the way does not overtake the rest
  assert.deepEqual(seqs(client, hung), [])

  silent.delete(hung)
  const { current_seq } = (await client.next(resyncOf(hung))).payload
  assert.deepEqual(seqs(client, hung), upTo(current_seq))
  const last = await work(hung)
  await client.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === last)
  const at = (await first.rest.json('GET', `/api/v1/sessions/${hung}/snapshot`)).data as { as_of_seq: number }
  await until(
    async () => seqs(client, hung),
    all => all.at(-1) === at.as_of_seq
  )
  assert.deepEqual(seqs(client, hung), upTo(at.as_of_seq))
  assert.equal(client.frames.filter(({ type }) => type === 'resync_required').length, 1)
})

test('a client that was up to date hears nothing but what comes after, one without a cursor is told where its events begin', {
  timeout
}, async t => {
  const { first, second, silent, cwd, work } = await scene(t)
  const [known, fresh] = [await newSession(first, cwd), await newSession(first, cwd)]
  await work(known)
  const { as_of_seq: seq, epoch } = (await first.rest.json('GET', `/api/v1/sessions/${known}/snapshot`)).data as never
  for (const id of [known, fresh]) silent.add(id)
  const client = await second.connect()
  const { code, payload } = await client.request('subscribe', { session_ids: [known, fresh], cursors: { [known]: { seq, epoch } } })
  assert.deepEqual([code, payload.accepted, payload.cursors], [0, [known, fresh], {}])

  silent.clear()
  const { current_seq } = (await client.next(resyncOf(fresh))).payload
  for (const [id, from] of [
    [fresh, current_seq],
    [known, seq]
  ] as const) {
    const told = await work(id)
    await client.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === told)
    const got = seqs(client, id).filter(at => at! > from)
    assert.deepEqual(got, upTo(got.at(-1), from + 1))
  }
  assert.equal(client.frames.filter(resyncOf(known)).length, 0)
})

test('what was asked for of a silent session can be asked for anew, and taken back', { timeout }, async t => {
  const { first, second, silent, cwd, work } = await scene(t)
  const [again, dropped] = [await newSession(first, cwd), await newSession(first, cwd)]
  for (const id of [again, dropped]) {
    silent.add(id)
    await work(id)
  }
  const client = await second.connect()
  const wish = { session_ids: [again, dropped], cursors: { [again]: { seq: 0 }, [dropped]: { seq: 0 } } }
  for (let n = 0; n < 3; n++) assert.equal((await client.request('subscribe', wish)).code, 0)
  assert.equal((await client.request('subscribe', { session_ids: [again] })).code, 0) // keeps what it waits for
  assert.equal((await client.request('unsubscribe', { session_ids: [dropped] })).code, 0)
  assert.deepEqual(await listed(second), [again])

  silent.clear()
  const { current_seq } = (await client.next(resyncOf(again))).payload
  assert.deepEqual(seqs(client, again), upTo(current_seq))
  await work(again)
  await work(dropped)
  const last = await work(again)
  await client.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === last)
  assert.deepEqual(seqs(client, again), upTo(seqs(client, again).at(-1)))
  assert.ok(!durable(client, dropped).some(({ type }) => type === 'turn.started'))
  assert.deepEqual(await listed(second), [again])
})

test('what a server tells everyone goes to a client again after it took back what it waited for', { timeout }, async t => {
  const { first, second, silent, cwd, work } = await scene(t)
  const id = await newSession(first, cwd)
  silent.add(id)
  const client = await second.connect()
  await client.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  await client.request('unsubscribe', { session_ids: [id] })
  await work(id)
  await client.next(frame => frame.type === 'event.session.work_changed' && frame.session_id === id)
})

test('who asks for more of a session than events gets first what it waits for', { timeout }, async t => {
  const { first, second, silent, cwd, work } = await scene(t)
  const id = await newSession(first, cwd)
  await work(id)
  const { as_of_seq } = (await first.rest.json('GET', `/api/v1/sessions/${id}/snapshot`)).data as { as_of_seq: number }
  silent.add(id)
  const client = await second.connect()
  assert.equal((await client.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })).code, 0)
  const asked = client.request('subscribe_v2', { session_id: id, transcript: { '*': 'delta' } })
  silent.delete(id)
  assert.equal((await asked).code, 0)
  assert.deepEqual(seqs(client, id), upTo(as_of_seq))
  assert.ok(client.frames.some(({ type }) => type === 'transcript.reset'))
  // No replay brings text that streamed between those events.
  assert.equal((await client.next(resyncOf(id))).payload.current_seq, as_of_seq)
})

const everyone = new Set(['event.session.created', 'event.session.work_changed', 'session.meta.updated', 'event.session.status_changed'])

/** A client that notes what came twice, out of order, or without being asked for. */
class Watcher {
  readonly last = new Map<string, number>()
  readonly wanted = new Set<string>()
  readonly faults: string[] = []
  /** Asks for what it has already: then events may come twice. */
  readonly isImpatient: boolean
  #socket: SocketClient | undefined

  constructor(isImpatient: boolean) {
    this.isImpatient = isImpatient
  }

  async connect(server: TestKernel): Promise<void> {
    this.#socket?.terminate()
    const socket = await server.connect()
    this.#socket = socket
    socket.ws.on('message', (data: Buffer) => this.#socket === socket && this.#take(JSON.parse(String(data)) as Frame))
    await this.#ask('client_hello', 'subscriptions', [...this.wanted])
  }

  async subscribe(ids: readonly string[]): Promise<void> {
    const fresh = this.isImpatient ? ids : ids.filter(id => !this.wanted.has(id))
    for (const id of fresh) this.wanted.add(id)
    await this.#ask('subscribe', 'session_ids', fresh)
  }

  async unsubscribe(id: string): Promise<void> {
    await this.#socket?.request('unsubscribe', { session_ids: [id] })
    this.wanted.delete(id)
  }

  async #ask(type: string, field: string, ids: readonly string[]): Promise<void> {
    const cursors = Object.fromEntries(ids.map(id => [id, { seq: this.last.get(id) ?? 0 }]))
    const { code } = (await this.#socket?.request(type, { [field]: ids, cursors })) ?? {}
    if (code !== 0) this.faults.push(`${type}: ${code}`)
  }

  #take({ type, session_id: id, seq, volatile, payload }: Frame): void {
    const last = this.last.get(id ?? payload.session_id) ?? 0
    if (type === 'resync_required' && payload.current_seq > last) this.faults.push(`resync at ${payload.current_seq} after ${last}`)
    if (id === undefined || id === '__global__' || seq === undefined || volatile) return
    if (!everyone.has(type)) {
      if (!this.wanted.has(id)) this.faults.push(`${type} ${seq} was not asked for`)
      if (seq > last + 1 || (seq <= last && !this.isImpatient)) this.faults.push(`${type} ${seq} after ${last}`)
    }
    if (seq === last + 1) this.last.set(id, seq)
  }
}

test('whatever clients ask for while servers fall silent and speak again, nothing is lost, comes twice or in vain', {
  timeout
}, async t => {
  const seed = Number(process.env.SVC_CODE_TEST_SEED ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const random = randomSource(seed)
  const pick = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
  const { first, second, silent, cwd } = await scene(t)
  const theirs = [await newSession(first, cwd), await newSession(first, cwd)]
  const ids = [...theirs, await newSession(second, cwd)]
  const clients = [false, false, true, true].map(isImpatient => new Watcher(isImpatient))
  for (const client of clients) await client.connect(second)
  const some = () => ids.filter(() => random() < 0.6)
  const acts: ((client: Watcher) => unknown)[] = [
    () => silent.add(pick(theirs)),
    () => silent.delete(pick(theirs)),
    () => silent.clear(),
    () => prompt(first, pick(theirs), 'hi'),
    () => prompt(second, ids[2]!, 'hi'),
    client => client.subscribe(some()),
    client => client.subscribe(some()),
    client => client.unsubscribe(pick(ids)),
    client => client.connect(second)
  ]
  const busy = new Map(clients.map(client => [client, Promise.resolve()]))
  for (let step = 0; step < 150; step++) {
    const client = pick(clients)
    const act = pick(acts)
    if (act.length === 0) await act(client)
    else
      busy.set(
        client,
        busy.get(client)!.then(() => act(client) as Promise<void>)
      )
    if (random() < 0.3) await new Promise(resolve => setTimeout(resolve, random() * 30))
  }
  silent.clear()
  await Promise.all(busy.values())
  for (const client of clients) await client.subscribe(ids)
  for (const id of ids) {
    const at = () => first.rest.json('GET', `/api/v1/sessions/${id}/snapshot`)
    await until(
      async () => (await at()).data as { as_of_seq: number; session: { busy: boolean } },
      ({ as_of_seq, session }) => !session.busy && clients.every(({ last }) => last.get(id) === as_of_seq)
    )
  }
  assert.deepEqual(
    clients.map(({ faults }) => faults),
    clients.map(() => [])
  )
})
