/** What becomes of requests to the user while no client is there, as the operator chose. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Attendance } from '../../../features/interactions/attendance.ts'
import { ApprovalExpired, approvalRequested, listApprovals, resolveApproval } from '../../../features/interactions/index.ts'
import interactions from '../../../features/interactions/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import questions from '../../../features/questions/pack.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { Tools } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { startAgent } from '../agent/start.ts'
import { scripted } from '../tools/fakes.ts'

const risky = definePack({ name: 'risky', setup: ctx => void ctx.contribute(Tools, scripted({ name: 'Risky' })) })
const call = toolCalls({ id: 'c1', name: 'Risky' })
const options = [{ label: 'Red' }, { label: 'Blue' }]
const ask = toolCalls({ id: 'c1', name: 'AskUserQuestion', args: { questions: [{ question: 'Which?', options }] } })

async function start(t: TestContext, unattended: 'deny' | 'fail', replies: readonly Reply[], grace = 1) {
  const hold = setInterval(() => undefined, 1_000) // timers of the broker do not keep the process alive
  t.after(() => clearInterval(hold))
  const llm = scriptedLlm(...replies, 'done')
  const server = await startAgent(t, llm, {
    packs: [interactions, questions, tools, permissions, risky],
    config: { interactions: { unattended, unattended_grace_ms: grace } }
  })
  const params = { session_id: server.session_id }
  return {
    ...server,
    llm,
    params,
    result: () => server.events.find(({ type }) => type === 'tool.result')?.payload as { output: string; isError?: true },
    ended: () =>
      server.events.find(({ type }) => type === 'turn.ended')?.payload as { reason: string; error?: { code: string; message: string } }
  }
}

test('a call that nobody is there to approve is denied, the turn goes on, and a late answer hears that it timed out', async t => {
  const server = await start(t, 'deny', [call])
  await server.prompt('go')
  await server.settled(1)
  assert.match(server.result().output, /Nobody is there to approve/)
  assert.deepEqual([server.result().isError, server.ended().reason, server.llm.requests.length], [true, 'completed', 2])
  const resolved = server.events.find(({ type }) => type === 'event.approval.resolved')?.payload as {
    approval_id: string
    decision: string
  }
  assert.equal(resolved.decision, 'cancelled')
  assert.equal((await server.call(readSession, { params: server.params })).data.pending_interaction, 'none')
  const params = { ...server.params, approval_id: resolved.approval_id }
  const late = await server.call(resolveApproval, { params, body: { decision: 'approved' } })
  assert.deepEqual([late.code, late.data], [ApprovalExpired.code, { resolved: false }])
})

test('with the policy "fail" the turn fails, and says why; calls behind it are not made', async t => {
  const both = toolCalls({ id: 'c1', name: 'Risky' }, { id: 'c2', name: 'Risky', args: { path: 'x' } })
  const server = await start(t, 'fail', [both])
  await server.prompt('go')
  await server.settled(1)
  const { reason, error } = server.ended()
  assert.deepEqual(
    [reason, error?.code, error?.message],
    ['failed', 'interaction.unattended', 'nobody was there to answer the approval of Risky']
  )
  assert.equal(server.llm.requests.length, 1)
  assert.equal(server.events.filter(({ type }) => type === 'tool.result').length, 2)
  const asked = server.events.filter(({ type }) => type === approvalRequested.type)
  assert.equal(asked.length, 1)
  await server.prompt('again') // the agent can be asked anew
  await server.settled(2)
})

test('a question that nobody is there to answer ends without an answer, or fails its turn', async t => {
  const deny = await start(t, 'deny', [ask])
  await deny.prompt('go')
  await deny.settled(1)
  assert.match(JSON.parse(deny.result().output).note, /Nobody is there/)
  assert.equal(deny.ended().reason, 'completed')
  const fail = await start(t, 'fail', [ask])
  await fail.prompt('go')
  await fail.settled(1)
  assert.equal(fail.ended().error?.code, 'interaction.unattended')
})

test('while a client is subscribed the request waits; once it is gone the grace begins', async t => {
  const server = await start(t, 'deny', [call])
  const client = await server.connect()
  await client.request('client_hello', { client_id: 'c', subscriptions: [server.session_id] })
  await server.prompt('go')
  await server.waitFor(event => event.type === approvalRequested.type)
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  assert.equal((await server.call(listApprovals, { params: server.params, query: { status: 'pending' } })).data.items.length, 1)
  client.terminate()
  await server.settled(1)
  assert.match(server.result().output, /Nobody is there/)
})

test('the time without anybody is counted from the last one who was there', () => {
  let now = 1_000
  let connected = false
  const attendance = new Attendance({ here: () => connected, now: () => now, grace_ms: 100 })
  assert.equal(attendance.left(), 100)
  now += 60
  assert.equal(attendance.left(), 40)
  attendance.seen()
  assert.equal(attendance.left(), 100)
  connected = true
  now += 500
  assert.equal(attendance.left(), 100)
  connected = false
  now += 99
  assert.equal(attendance.left(), 1)
  now += 1
  assert.equal(attendance.left(), 0)
  assert.equal(attendance.left(), 0, 'who comes later need not wait anew')
})
