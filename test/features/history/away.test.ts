/** Packs that tell events of records are swapped: what is put on record meanwhile is told when they are back, once and in its order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineRecord, Histories, RecordEvents, recordTypes } from '../../../features/history/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { readSession, Sessions } from '../../../features/sessions/index.ts'
import { defineEvent, definePack, Type } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { copyOfHome, type Started, startAgent } from '../agent/start.ts'

const fields = Type.Object({ n: Type.Integer() })
const kinds = ['seen', 'heard'].map(name => ({
  name,
  record: defineRecord(name, fields),
  event: defineEvent({ type: `test.${name}`, scope: 'session', durable: true, payload: fields, summary: `${name} by a test` })
}))
type Kind = (typeof kinds)[number]
const [seen, heard] = kinds as [Kind, Kind]

/** Tells the events of one kind of record. */
const teller = ({ name, record: spec, event }: Kind, ready: () => Promise<void> = async () => undefined) =>
  definePack({
    name,
    needs: { histories: Histories },
    async setup(ctx) {
      const emit = ctx.event(event)
      ctx.contribute(RecordEvents, {
        records: recordTypes(spec),
        events: record => (spec.is(record) ? [{ type: event.type, payload: { n: record.n }, at: new Date(record.time ?? 0) }] : []),
        tell: (agent, { payload }) => emit(payload as { n: number }, { session_id: agent.session.id, subject: agent.id })
      })
      await ready()
    }
  })

async function start(t: TestContextLike, options: { home?: string; session_id?: string } = {}) {
  let services: { histories: Histories; sessions: Sessions } | undefined
  const writer = definePack({
    name: 'writer',
    needs: { histories: Histories, sessions: Sessions },
    setup(_ctx, given) {
      services = given
    }
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { ...options, packs: [teller(seen), teller(heard), writer] })
  return {
    ...agent,
    told: () => told(agent),
    async write({ record }: Kind, n: number) {
      const session = await services?.sessions.load(agent.session_id)
      const history = session && (await services?.histories.of(await session.main()))
      await history?.append(record.of({ n }))
    }
  }
}

const told = ({ events }: Pick<Started, 'events'>) =>
  events.flatMap(({ type, payload }) => (type.startsWith('test.') ? [`${type.slice('test.'.length)} ${(payload as { n: number }).n}`] : []))
const isTold = (kind: Kind, n: number) => (event: { type: string; payload: unknown }) =>
  event.type === kind.event.type && (event.payload as { n: number }).n === n

/** Swaps a teller, whose setup ends when `end` is called; resolves when that began. */
async function swap(agent: Started, kind: Kind) {
  return await new Promise<{ over: Promise<void>; end: () => void; fail: (error: Error) => void }>(begun => {
    const over: Promise<void> = agent.kernel.reload(
      teller(kind, () => new Promise((end, fail) => setImmediate(() => begun({ over, end, fail }))))
    )
  })
}

test('what is put on record while the pack that tells it is swapped is told when it is back, and what is behind it waits', async t => {
  const agent = await start(t)
  await agent.write(seen, 1)
  const { over, end } = await swap(agent, seen)

  await agent.write(heard, 2)
  await agent.write(seen, 3)
  await agent.write(heard, 4)
  await agent.waitFor(isTold(heard, 2))
  end()
  await over
  await agent.waitFor(isTold(heard, 4))
  await agent.write(seen, 5)
  await agent.waitFor(isTold(seen, 5))

  assert.deepEqual(agent.told(), ['seen 1', 'heard 2', 'seen 3', 'heard 4', 'seen 5'])
})

test('a snapshot that is asked for meanwhile has the position behind what waits', async t => {
  const agent = await start(t)
  const params = { session_id: agent.session_id }
  const { over, end } = await swap(agent, seen)
  await agent.write(seen, 1)
  await agent.write(heard, 2)

  const asked = agent.call(readSnapshot, { params })
  await agent.call(readSession, { params })
  end()
  await over
  const { as_of_seq } = (await asked).data
  await agent.waitFor(isTold(heard, 2))
  assert.equal((await agent.call(readSnapshot, { params })).data.as_of_seq, as_of_seq)
})

for (const gone of ['fails', 'is switched off']) {
  test(`a pack that ${gone} holds up nobody's events`, async t => {
    const agent = await start(t)
    const { over, end, fail } = await swap(agent, seen)
    await agent.write(seen, 1)
    await agent.write(heard, 2)
    if (gone === 'fails') fail(new Error('no'))
    else {
      end()
      await over
      await agent.kernel.unload(seen.name)
      await agent.write(seen, 3)
    }
    await over

    await agent.write(heard, 4)
    await agent.waitFor(isTold(heard, 4))
    assert.deepEqual(agent.told(), gone === 'fails' ? ['heard 2', 'heard 4'] : ['seen 1', 'heard 2', 'heard 4'])
  })
}

test('a server that is killed while a pack is away has its successor tell what waited, once and in order', async t => {
  const agent = await start(t)
  await agent.write(heard, 1)
  const { over, end } = await swap(agent, seen)
  await agent.write(seen, 2)
  await agent.write(heard, 3)
  const home = await copyOfHome(agent.home)
  end()
  await over

  const { session_id } = agent
  const next = await start(t, { home, session_id })
  await next.call(listMessages, { params: { session_id } })
  await next.write(seen, 4)
  await next.waitFor(isTold(seen, 4))
  assert.deepEqual(next.told(), ['seen 2', 'heard 3', 'seen 4'])
})
