/** What happens seldom: a disk that refuses, a turn too long for memory, more than is kept. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentHost, Session } from '../../../features/sessions/index.ts'
import { Audience } from '../../../features/transcript/audience.ts'
import type { Grade } from '../../../features/transcript/contract.ts'
import { Entities } from '../../../features/transcript/entities.ts'
import { plansOf } from '../../../features/transcript/inputs.ts'
import { OpJournal } from '../../../features/transcript/op-journal.ts'
import transcript from '../../../features/transcript/pack.ts'
import { type PageQuery, pageOf as pageIn } from '../../../features/transcript/page.ts'
import type { Source } from '../../../features/transcript/source.ts'
import type { AgentStream } from '../../../features/transcript/stream.ts'
import { TurnFold } from '../../../features/transcript/turn-fold.ts'
import type { Connection } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { echoRunner, historyOnDisk, startAgent } from '../agent/start.ts'
import { common, pageOf, TranscriptClient } from './client.ts'

test('when the disk refuses records, followers get a baseline and go on with what is on disk', { timeout: 30_000 }, async t => {
  let refuse = true
  const history = historyOnDisk(records => {
    if (!refuse || !records.some(({ type }) => type === 'tool.begin')) return
    refuse = false
    throw new Error('disk full')
  })
  const llm = scriptedLlm([{ type: 'text', text: 'calling ' }, ...toolCalls({ id: 'a', name: 'Echo' })], 'done')
  const server = await startAgent(t, llm, { packs: [transcript, echoRunner()], history })
  const client = new TranscriptClient()
  await client.connect(server)
  await server.prompt('go')
  await server.settled(1)
  await server.prompt('again')
  await server.settled(2)
  // Events do not wait until the journal was read again and followers got the baseline.
  while (client.resets < 2) await client.settle(server)
  const page = await pageOf(server)
  await client.settle(server)
  const view = client.view()
  assert.ok(view)
  assert.deepEqual(common(view), common(page))
  assert.deepEqual(
    page.items.flatMap(item => (item.kind === 'turn' ? [item.state] : [])),
    ['failed', 'completed']
  )
})

test('a number that a stream gave is given by none behind it, also when nothing got on record in between', { timeout: 30_000 }, async t => {
  const home = await freshDir()
  const before = await startAgent(t, scriptedLlm('ok'), { packs: [transcript], home })
  await before.prompt('go')
  await before.settled(1)
  await before.kernel.stop()

  let refused = false
  const [gate, slow] = [latch(), latch()]
  const history = historyOnDisk(async records => {
    if (refused) return await slow.opened
    refused = records.some(({ type }) => type === 'step.message')
    if (refused) throw new Error('disk full')
  })
  const llm = scriptedLlm([{ type: 'text', text: 'so far' }, { type: 'wait', until: gate.opened }, ...text(' and on')], 'done')
  const server = await startAgent(t, llm, { packs: [transcript], history, home, session_id: before.session_id })
  await server.prompt('again')
  await server.waitFor(({ type }) => type === 'assistant.delta')
  const client = new TranscriptClient()
  await client.connect(server) // the stream begins where the last record ends
  gate.open()
  while (client.resets < 2) {
    await pageOf(server) // who looks finds that the journal was read again
    await client.settle(server)
  }
  slow.open()
  await server.settled(1)
})

test('of a turn that is too long for memory only the last step is held, and what cannot be told is told anew', () => {
  const fold = new TurnFold()
  let at = 0
  const take = (record: { type: string; [field: string]: unknown }) => fold.take({ time: at, ...record }, at++)
  take({ type: 'turn.started', turn_id: 0, origin: { kind: 'user' } })
  take({ type: 'message', role: 'user', content: [{ type: 'text', text: 'go' }], turn_id: 0, origin: { kind: 'user' } })
  take({ type: 'step.begin', turn_id: 0, step: 1, step_id: 'a' })
  take({ type: 'step.message', turn_id: 0, step: 1, content: [{ type: 'text', text: 'one' }], tool_calls: [] })
  take({ type: 'step.end', turn_id: 0, step: 1, step_id: 'a', reason: 'end_turn' })
  take({ type: 'step.begin', turn_id: 0, step: 2, step_id: 'b' })
  fold.forgetFrames()
  assert.deepEqual(
    fold.timeline.turn('t0')?.steps.map(({ frames }) => frames.length),
    [0, 0]
  )
  assert.equal(fold.streamed('text', 0, 'lost').length, 2)
  assert.equal(fold.broken, false)
  const retry = { failed_attempt: 1, max_attempts: 2, delay_ms: 1, error_name: 'E', error_message: 'busy' }
  take({ type: 'step.end', turn_id: 0, step: 2, step_id: 'b', reason: 'error', retry })
  assert.equal(fold.broken, true)
  assert.deepEqual(
    fold.timeline.turn('t0')?.steps.map(({ frames }) => frames.length),
    [0, 0]
  )
})

test('batches are kept up to a number of bytes; who is behind them cannot go on', () => {
  const journal = new OpJournal(7)
  assert.deepEqual(journal.since(7), { batches: [], latest_seq: 7, complete: true })
  assert.equal(journal.since(6).complete, false)
  for (let n = 0; n < 4; n++) journal.add([{ op: 'meta.merge', meta: {} }], 400_000)
  assert.deepEqual([journal.latest, journal.since(9).batches.map(({ seq }) => seq), journal.since(9).complete], [11, [10, 11], true])
  assert.deepEqual([journal.since(8).complete, journal.since(12).complete], [false, false])
  journal.break()
  assert.deepEqual([journal.latest, journal.since(11).complete, journal.since(12).complete], [12, false, true])
})

test('a page takes at most 8 MB of the journal, but for one turn', async () => {
  const megabytes = 1024 * 1024
  const entries = [0, 1, 6, 11].map((at, ordinal) => ({ ordinal, at: at * megabytes }) as Source['entries'][number])
  const source = { entries, end: 30 * megabytes, records: async function* () {} } as unknown as Source
  const more = async (query: Omit<PageQuery, 'page_size'>) => (await pageIn(source, { page_size: 4, ...query })).has_more
  assert.deepEqual(
    [await more({}), await more({ before_turn: 't3' }), await more({ before_turn: 't2' }), await more({ after_turn: 't0' })],
    [true, true, false, true]
  )
})

test('plans stand in the order of their turns, also one that was put up by a call that never ran', async () => {
  const display = (plan: string) => ({ kind: 'plan_review', plan })
  const args = {}
  const content = [{ type: 'text', text: 'Not in plan mode.' }]
  const turn = [
    { type: 'turn.started', turn_id: 1, origin: { kind: 'user' } },
    { type: 'step.begin', turn_id: 1, step: 1, step_id: 'a' },
    { type: 'tool.begin', turn_id: 1, step: 1, tool_call_id: 'two', tool_name: 'ExitPlanMode', args, display: display('second') },
    // What a call answers that fails is no plan.
    { type: 'tool.begin', turn_id: 1, step: 1, tool_call_id: 'three', tool_name: 'ExitPlanMode', args },
    { type: 'tool.result', turn_id: 1, step: 1, tool_call_id: 'three', tool_name: 'ExitPlanMode', content, is_error: true }
  ]
  const request = { toolName: 'ExitPlanMode', turnId: 0, display: display('first') }
  const source = {
    entries: [
      { ordinal: 0, at: 0 },
      { ordinal: 1, at: 10, planned: true }
    ],
    end: 20,
    entities: { interactions: [{ interactionId: 'i', interactionKind: 'approval', toolCallId: 'one', state: 'cancelled', request }] },
    records: async function* () {
      for (const [at, value] of turn.entries()) yield { value, at: at + 10, next: at + 11 }
    }
  } as unknown as Source
  assert.deepEqual(
    (await plansOf(source)).map(({ tool_call_id, turn_id, plan, review }) => [tool_call_id, turn_id, plan, review?.state]),
    [
      ['one', 't0', 'first', 'cancelled'],
      ['two', 't1', 'second', undefined]
    ]
  )
})

test('older entities keep their heads when all together are too large', () => {
  const entities = new Entities()
  const text = 'x'.repeat(200_000)
  let time = 0
  for (const prompt_id of ['a', 'b', 'c', 'd']) {
    entities.take({ type: 'prompt.accepted', prompt_id, content: [{ type: 'text', text }], time: time++ }, undefined)
    entities.take({ type: 'prompt.settled', prompt_ids: [prompt_id], status: 'completed', time: time++ }, undefined)
  }
  assert.deepEqual(
    entities.shown().prompts.map(({ promptId, status, content }) => [promptId, status, content !== undefined]),
    [
      ['a', 'completed', false],
      ['b', 'completed', false],
      ['c', 'completed', true],
      ['d', 'completed', true]
    ]
  )
  assert.deepEqual(Entities.load(JSON.parse(JSON.stringify(entities.save()))).shown(), entities.shown())
})

test('what waits in a stream while somebody comes is in the baseline, or goes out before it', () => {
  const sent: string[] = []
  const send = (connection: Connection, _session: Session, type: string, payload: object) =>
    sent.push(`${connection.id} ${type} ${'seq' in payload ? payload.seq : ''}`)
  const audience = new Audience({ id: 'session_a' } as Session, { pack: 'transcript', send })
  const agent = { id: 'main' } as AgentHost
  let seq = 0
  let waits = 0
  const settle = () => {
    while (waits > 0) {
      waits--
      audience.dispatch(agent, { seq: ++seq, ops: [{ op: 'meta.merge', meta: {} }] })
    }
    return { items: [], hasMoreOlder: false }
  }
  const stream = {
    get seq() {
      return seq
    },
    baseline: settle
  } as unknown as AgentStream
  const clientOf = (id: string) => ({ id, suppress: () => () => undefined, own: (undo: () => void) => undo }) as unknown as Connection
  const come = (connection: Connection, grade: Grade) => {
    waits = 1
    audience.set(connection, new Map([['main', grade]]))
    audience.begin(connection, agent, stream)
  }
  const [a, b] = [clientOf('a'), clientOf('b')]
  come(a, 'turn')
  come(b, 'delta')
  assert.deepEqual(sent.splice(0), ['a transcript.reset 1', 'a transcript.ops 2', 'b transcript.reset 2'])

  waits = 1
  audience.beginAll(agent, stream, true)
  assert.deepEqual(sent, ['a transcript.reset 3', 'b transcript.reset 3'])
})
