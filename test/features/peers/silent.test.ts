/** Sessions whose server is there and says nothing, among others that a client asks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePack, type Place, Unreached } from '../../../kernel/index.ts'
import type { Frame, SocketClient, TestKernel } from '../../../kernel/testing.ts'
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
    setup(ctx) {
      taps.push(() => ctx.tap(ctx.hooks.elsewhere, async id => (silent.has(id) ? place : undefined), { stage: -1 }))
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
    [[hung, mine, live], ['session_nobody'], []]
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
