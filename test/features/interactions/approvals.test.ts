import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryRecord } from '../../../features/history/index.ts'
import { Broker } from '../../../features/interactions/broker.ts'
import {
  AlreadyResolved,
  type ApprovalAnswer,
  type ApprovalAsk,
  ApprovalExpired,
  ApprovalMissing,
  type ApprovalRequest,
  approvals as kind
} from '../../../features/interactions/index.ts'
import { eventsOf } from '../../../features/interactions/records.ts'
import { Remembered } from '../../../features/interactions/remembered.ts'
import { AppError, type Static } from '../../../kernel/index.ts'
import { fakeAgent, silent, type TestLike } from '../tools/fakes.ts'

async function scene(t: TestLike, options: { readonly ttlMs?: number; readonly recorded?: (type: string) => void } = {}) {
  const agent = await fakeAgent(t)
  const told = agent.session.told
  let time = 0
  let ids = 0
  const broker = new Broker(agent.session, {
    // As slow as a disk: what does not wait for a record comes before it.
    record: async (_agent, record) => {
      await new Promise(setImmediate)
      options.recorded?.(record.type)
      told.push(record.type)
      const tell = () => {
        for (const { type, payload } of eventsOf(record, [{ kind }])) {
          const { approval_id, decision } = payload as { readonly approval_id: string; readonly decision?: string }
          told.push(`${type.replace('event.approval.', '')} ${approval_id}${decision === undefined ? '' : ` ${decision}`}`)
        }
      }
      return { tell }
    },
    log: silent,
    now: () => new Date(time),
    newId: () => String(ids++)
  })
  t.after(() => broker.close())
  const source = { kind, ttl_ms: options.ttlMs ?? 86_400_000, tell: () => undefined }
  const approvals = {
    ask: (asked: ApprovalAsk, signal: AbortSignal) => broker.ask(source, asked, signal),
    pending: () => broker.open().map(open => open.request as Static<typeof ApprovalRequest>),
    resolve: (id: string, answer: ApprovalAnswer) => broker.answer(kind, id, answer),
    close: () => broker.close()
  }
  const ask: ApprovalAsk = {
    agent,
    turn_id: 0,
    tool_call_id: 'call_1',
    tool_name: 'Bash',
    action: 'Running: ls',
    display: { kind: 'command', command: 'ls' }
  }
  const control = new AbortController()
  return {
    approvals,
    told,
    ask,
    control,
    pass: (ms: number) => {
      time += ms
    },
    /** Asks and returns once the request is open. */
    async open() {
      const answer = approvals.ask(ask, control.signal)
      while (approvals.pending().length === 0) await new Promise(setImmediate)
      return { answer, id: approvals.pending().at(-1)?.approval_id ?? '' }
    }
  }
}

const refusedWith = (code: number) => (error: unknown) => AppError.is(error) && error.code === code

test('an answer resolves the request once; its events frame the change of work', async t => {
  const { approvals, told, open } = await scene(t)
  const { answer, id } = await open()
  assert.equal(approvals.pending()[0]?.expires_at, '1970-01-02T00:00:00.000Z')

  await approvals.resolve(id, { decision: 'approved', scope: 'session' })

  assert.deepEqual(await answer, { how: 'answered', answer: { decision: 'approved', scope: 'session' } })
  assert.deepEqual(told, [
    'interaction.request',
    'approval +1',
    'requested approval_0',
    'interaction.resolved',
    'approval -1',
    'resolved approval_0 approved'
  ])
  assert.deepEqual(approvals.pending(), [])
  await assert.rejects(approvals.resolve(id, { decision: 'approved' }), refusedWith(AlreadyResolved.code))
  await assert.rejects(approvals.resolve('approval_x', { decision: 'approved' }), refusedWith(ApprovalMissing.code))
})

test('a settled id is forgotten after a minute', async t => {
  const { approvals, open, pass } = await scene(t)
  const { id } = await open()
  await approvals.resolve(id, { decision: 'rejected' })
  pass(59_999)
  await assert.rejects(approvals.resolve(id, { decision: 'approved' }), refusedWith(AlreadyResolved.code))
  pass(1)
  await assert.rejects(approvals.resolve(id, { decision: 'approved' }), refusedWith(ApprovalMissing.code))
})

test('the newest 256 settled ids of a session are remembered', () => {
  const ids = new Remembered(() => 0)
  for (let n = 0; n < 257; n++) ids.add(`id${n}`, 'resolved')
  assert.deepEqual([ids.get('id0'), ids.get('id1'), ids.get('id256')], [undefined, 'resolved', 'resolved'])
})

test('two answers at once: one wins, the other hears that it came too late', async t => {
  const { approvals, open } = await scene(t)
  const { answer, id } = await open()
  const [first, second] = await Promise.allSettled([
    approvals.resolve(id, { decision: 'approved' }),
    approvals.resolve(id, { decision: 'rejected' })
  ])
  assert.equal(first.status, 'fulfilled')
  assert.equal(second.status === 'rejected' && second.reason.code, AlreadyResolved.code)
  assert.deepEqual(await answer, { how: 'answered', answer: { decision: 'approved' } })
})

test('an abort withdraws the request', async t => {
  const { approvals, told, open, control } = await scene(t)
  const { answer, id } = await open()
  control.abort()
  assert.deepEqual(await answer, { how: 'withdrawn' })
  while (told.length < 6) await new Promise(setImmediate)
  assert.deepEqual(told.slice(3), ['interaction.resolved', 'resolved approval_0 cancelled', 'approval -1'])
  await assert.rejects(approvals.resolve(id, { decision: 'approved' }), refusedWith(AlreadyResolved.code))
})

test('an abort while an answer is being recorded comes too late: the answer counts', async t => {
  const { approvals, told, open, control } = await scene(t)
  const { answer, id } = await open()
  const resolving = approvals.resolve(id, { decision: 'approved' })
  control.abort()
  await resolving
  assert.deepEqual(await answer, { how: 'answered', answer: { decision: 'approved' } })
  for (let n = 0; n < 3; n++) await new Promise(setImmediate) // time enough for a second end
  assert.deepEqual(told.slice(3), ['interaction.resolved', 'approval -1', 'resolved approval_0 approved'])
})

/** The disk refuses one answer. */
function refusingOnce() {
  const disk = { refuses: false }
  const recorded = (type: string) => {
    if (!disk.refuses || type !== 'interaction.resolved') return
    disk.refuses = false
    throw new Error('the disk is full')
  }
  return { disk, recorded }
}

test('after an answer that the disk refuses another one may come', async t => {
  const { disk, recorded } = refusingOnce()
  const { approvals, open } = await scene(t, { recorded })
  const { answer, id } = await open()
  disk.refuses = true
  await assert.rejects(approvals.resolve(id, { decision: 'approved' }), /the disk is full/)
  assert.equal(approvals.pending().length, 1)
  await approvals.resolve(id, { decision: 'rejected' })
  assert.deepEqual(await answer, { how: 'answered', answer: { decision: 'rejected' } })
})

test('what would end a request while its answer is being recorded ends it when the disk refuses the answer', async t => {
  for (const how of ['abort', 'close'] as const) {
    const { disk, recorded } = refusingOnce()
    const { approvals, open, control } = await scene(t, { recorded })
    const { answer, id } = await open()
    disk.refuses = true
    const resolving = approvals.resolve(id, { decision: 'approved' })
    if (how === 'abort') control.abort()
    else void approvals.close()
    await assert.rejects(resolving, /the disk is full/)
    assert.deepEqual(await Promise.race([answer, new Promise(setImmediate)]), { how: 'withdrawn' }, how)
    assert.deepEqual(approvals.pending(), [])
  }
})

test('of a request that has ended no timer and no listener is left', async t => {
  const set = t.mock.method(globalThis, 'setTimeout')
  const cleared = t.mock.method(globalThis, 'clearTimeout')
  const { approvals, open, control } = await scene(t, { ttlMs: 77_777 })
  const removed = t.mock.method(control.signal, 'removeEventListener')
  const { id } = await open()
  await approvals.resolve(id, { decision: 'approved' })
  const timers = set.mock.calls.flatMap(({ arguments: [, ms], result }) => (ms === 77_777 ? [result] : []))
  assert.equal(timers.length, 1)
  assert.ok(cleared.mock.calls.some(({ arguments: [timer] }) => timer === timers[0]))
  assert.equal(removed.mock.callCount(), 1)
})

test('a record that does not have the shape of its kind tells nothing', () => {
  const events = (record: object) => eventsOf(record as HistoryRecord, [{ kind }])
  const whose = { kind: 'approval', id: 'approval_0' }
  assert.deepEqual(events({ type: 'interaction.request', ...whose, request: { approval_id: 5 } }), [])
  assert.deepEqual(events({ type: 'interaction.resolved', ...whose, how: 'answered', answer: { decision: 'perhaps' } }), [])
  assert.deepEqual(events({ type: 'interaction.resolved', ...whose, kind: 'gone', how: 'withdrawn' }), [])
  assert.equal(events({ type: 'interaction.resolved', ...whose, how: 'withdrawn' }).length, 1)
})

test('an expired request is withdrawn and says so to a late answer', async t => {
  const { approvals, told, ask, control } = await scene(t, { ttlMs: 1 })
  const hold = setInterval(() => undefined, 1_000) // the expiry timer alone does not keep the process alive
  t.after(() => clearInterval(hold))
  assert.deepEqual(await approvals.ask(ask, control.signal), { how: 'expired' })
  while (!told.includes('resolved approval_0 cancelled')) await new Promise(setImmediate)
  await assert.rejects(approvals.resolve('approval_0', { decision: 'approved' }), refusedWith(ApprovalExpired.code))
})

test('an aborted turn asks nothing, and closing withdraws what is open', async t => {
  const { approvals, told, ask, open } = await scene(t)
  assert.deepEqual(await approvals.ask(ask, AbortSignal.abort()), { how: 'withdrawn' })
  assert.deepEqual(told, [])
  const { answer } = await open()
  await approvals.close()
  assert.deepEqual(await answer, { how: 'withdrawn' })
})

test('a request whose turn is aborted while it is recorded is told, and then its end', async t => {
  const turn = new AbortController()
  const { approvals, told, ask } = await scene(t, { recorded: () => turn.abort() })

  assert.deepEqual(await approvals.ask(ask, turn.signal), { how: 'withdrawn' })

  assert.deepEqual(told, [
    'interaction.request',
    'approval +1',
    'requested approval_0',
    'interaction.resolved',
    'resolved approval_0 cancelled',
    'approval -1'
  ])
  assert.deepEqual(approvals.pending(), [])
})

test('closing waits for a request on its way to the disk, and withdraws it; behind it nobody is asked', async t => {
  let closing: Promise<void> | undefined
  const { approvals, told, ask, control } = await scene(t, {
    recorded: () => {
      closing ??= approvals.close()
    }
  })

  assert.deepEqual(await approvals.ask(ask, control.signal), { how: 'withdrawn' })
  await closing

  assert.deepEqual(told.slice(2), ['requested approval_0', 'interaction.resolved', 'resolved approval_0 cancelled', 'approval -1'])
  assert.deepEqual(await approvals.ask(ask, control.signal), { how: 'withdrawn' })
  assert.equal(told.length, 6)
})
