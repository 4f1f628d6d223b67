/**
 * A session is made while clients connect, listen, take snapshots and subscribe, in random interleavings. Each client passes the last number
 * that it applied, or asks for everything; its socket gets the creation at most once, whatever it hears and asks for.
 * `SVC_CODE_TEST_SEED` repeats a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { createSession, updateProfile } from '../../features/sessions/index.ts'
import { type Frame, startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { randomSource } from '../helpers/random.ts'
import { freshDir } from '../helpers/temp.ts'

const seed = Number(process.env.SVC_CODE_TEST_SEED ?? Date.now() % 1_000_000)
const rounds = 40
const titles = 4

type Way = 'from the beginning' | 'after a snapshot' | 'having listened, all of it, twice'

/** Applies durable frames of one session once, in order. */
class Reducer {
  last = 0
  readonly applied: Frame[] = []

  take(frame: Frame): void {
    if (frame.volatile || (frame.seq ?? 0) <= this.last) return
    this.last = frame.seq ?? 0
    this.applied.push(frame)
  }
}

/** Follows the session in one way, at some moment; answers what it applied until the last title. */
async function follow(server: TestKernel, id: Promise<string>, way: Way, wait: () => Promise<void>) {
  await wait()
  const socket = await server.connect()
  const listens = way === 'having listened, all of it, twice'
  if (listens) await socket.request('client_hello', {})
  await wait()
  const session = await id
  await wait()
  const reducer = new Reducer()
  const known = () => socket.frames.filter(({ session_id }) => session_id === session)
  for (const frame of known()) reducer.take(frame)
  let cursor: object = { seq: reducer.last }
  let snapshot: { as_of_seq: number; session: { title: string } } | undefined
  if (way === 'after a snapshot') {
    const { data } = await server.rest.json('GET', `/api/v1/sessions/${session}/snapshot`)
    snapshot = data as never
    const { as_of_seq: seq, epoch } = data as { as_of_seq: number; epoch: string }
    cursor = { seq, epoch }
    await wait()
  }
  if (listens) cursor = { seq: 0 }
  for (let times = listens ? 2 : 1; times > 0; times--) {
    const ack = await socket.request('subscribe', { session_ids: [session], cursors: { [session]: cursor } })
    assert.deepEqual(ack.payload.resync_required ?? [], [])
    await wait()
  }
  return { socket, snapshot, session, listens }
}

test(`seed ${seed}: each client applies the creation once, and everything behind its snapshot once`, async t => {
  const random = randomSource(seed)
  const server = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const cwd = await freshDir()
  const wait = async () => {
    for (let n = Math.floor(random() * 12); n > 0; n--) await turn()
  }
  for (let round = 0; round < rounds; round++) {
    const made = (async () => {
      await wait()
      return (await server.call(createSession, { body: { metadata: { cwd } } })).data.id
    })()
    const entitled = made.then(async session_id => {
      for (let n = 1; n <= titles; n++) {
        await wait()
        await server.call(updateProfile, { params: { session_id }, body: { title: `title ${n}` } })
      }
    })
    const ways: readonly Way[] = [
      'from the beginning',
      'after a snapshot',
      'from the beginning',
      'after a snapshot',
      'having listened, all of it, twice'
    ]
    const clients = await Promise.all(ways.map(way => follow(server, made, way, wait)))
    await entitled
    for (const { socket, snapshot, session, listens } of clients) {
      const own = (frame: Frame) => frame.session_id === session && !frame.volatile
      await socket.next(frame => own(frame) && frame.payload.title === `title ${titles}`)
      const sent = socket.frames.filter(frame => own(frame) && frame.type === 'event.session.created').length
      assert.ok(snapshot ? sent <= 1 : sent === 1, `the socket gets the creation ${sent} times`)
      if (listens) {
        const seen = new Set(socket.frames.filter(own).map(({ seq }) => seq))
        assert.deepEqual(
          [...seen].sort(),
          Array.from({ length: seen.size }, (_, at) => at + 1)
        )
        socket.terminate()
        continue
      }
      const reducer = new Reducer()
      if (snapshot) reducer.last = snapshot.as_of_seq
      // What came while the snapshot was on its way is in it, or comes behind its number.
      for (const frame of socket.frames.filter(own)) reducer.take(frame)
      const numbers = reducer.applied.map(({ seq }) => seq)
      const first = (snapshot?.as_of_seq ?? 0) + 1
      assert.deepEqual(
        numbers,
        numbers.map((_, at) => first + at),
        'nothing is lost, nothing comes twice'
      )
      const creations = reducer.applied.filter(({ type }) => type === 'event.session.created')
      assert.equal(creations.length, snapshot && snapshot.as_of_seq > 0 ? 0 : 1)
      const told = reducer.applied.flatMap(({ payload }) => (payload.title === undefined ? [] : [payload.title]))
      const shown = snapshot?.session.title ?? ''
      const behind = shown === '' ? 0 : Number(shown.split(' ')[1])
      // The title is at least as new as the number says, and never newer than what follows.
      assert.deepEqual(
        told,
        Array.from({ length: told.length }, (_, at) => `title ${titles - told.length + 1 + at}`)
      )
      assert.ok(titles - told.length <= behind || snapshot === undefined, 'no fact at or below the number is missing')
      socket.terminate()
    }
  }
})
