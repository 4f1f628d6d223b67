/** Approvals and questions in the transcripts that clients follow, of whatever grade. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Baseline, Transcript } from '../../examples/client/transcript.ts'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { busyModel } from '../helpers/busy-model.ts'
import { crashScene } from '../helpers/crash-scene.ts'
import type { Step } from '../helpers/fake-upstream.ts'

interface Shown {
  readonly interactionId: string
  readonly request?: Readonly<Record<string, unknown>>
}
interface Op {
  readonly op: string
  readonly ids?: readonly string[]
  readonly interaction?: Shown
  readonly turnId?: string
  readonly frame?: { readonly toolCallId?: string }
}

/** A session, and a turn of it that asks the user, who dismisses the question; it answers the request when all of that is over. */
async function start(t: TestContext) {
  const { home, place } = await crashScene(t, { model: busyModel, toml: 'default_permission_mode = "yolo"' })
  const { rest, connect } = await startTestKernel(t, { packs: await loadDefaultPacks(), home })
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }
  const session = `/api/v1/sessions/${id}`
  const watcher = await connect()
  await watcher.request('subscribe', { session_ids: [id] })
  const asks = async () => {
    await rest.json('POST', `${session}/prompts`, { content: [{ type: 'text', text: 'do:ask:a' }] })
    const { payload } = await watcher.next('event.question.requested')
    await rest.json('POST', `${session}/questions/${payload.question_id}:dismiss`)
    await watcher.next('prompt.completed')
    await watcher.next(({ type, payload: work }) => type === 'event.session.work_changed' && !work.busy)
    return payload
  }
  return { rest, connect, id, session, asks }
}

test('an interaction says who asks, and an undo that takes it out tells clients of every grade', async t => {
  const { rest, connect, id, session, asks } = await start(t)
  const grades = ['turn', 'block', 'delta']
  const clients = await Promise.all(grades.map(() => connect()))
  for (const [at, client] of clients.entries()) {
    assert.equal((await client.request('subscribe_v2', { session_id: id, transcript: { '*': grades[at]! } })).code, 0)
  }

  const payload = await asks()
  const page = async () => (await rest.json('GET', `${session}/transcript?agent_id=main`)).data as { interactions: Shown[] }
  const [asked] = (await page()).interactions
  assert.equal(asked?.interactionId, payload.question_id)
  assert.deepEqual([asked?.request?.sessionId, asked?.request?.agentId], [id, 'main'])
  // A client of the event reads it as well.
  const request = asked?.request ?? {}
  for (const key of ['question_id', 'session_id', 'tool_call_id', 'turn_id', 'created_at']) assert.equal(request[key], payload[key], key)
  const [item] = request.questions as readonly Readonly<Record<string, unknown>>[]
  assert.deepEqual({ ...item, ...payload.questions[0] }, item)
  assert.deepEqual([item?.allow_other, item?.allowOther], [true, true])

  assert.equal((await rest.json('POST', `${session}:undo`, { count: 1 })).code, 0)
  assert.deepEqual((await page()).interactions, [])
  for (const [at, client] of clients.entries()) {
    const isRemoval = ({ op, ids }: Op) => op === 'items.remove' && ids?.includes(payload.question_id)
    const { payload: batch } = await client.next(({ type, payload: { ops } }) => type === 'transcript.ops' && (ops as Op[]).some(isRemoval))
    assert.ok(batch.seq > 0, grades[at])
  }
})

test('an undo of a turn that a baseline lacks takes what its calls asked from clients that go by these', async t => {
  const { rest, connect, id, asks } = await start(t)
  await asks()
  const client = await connect()
  await client.request('subscribe_v2', { session_id: id, transcript: { main: 'block' } })
  const { snapshot } = (await client.next('transcript.reset')).payload
  assert.deepEqual([snapshot.items, snapshot.interactions.length], [[], 1])

  assert.equal((await rest.json('POST', `/api/v1/sessions/${id}:undo`, { count: 1 })).code, 0)

  const isRemoval = ({ op, ids }: Op) => op === 'items.remove' && ids?.includes('t0')
  const { payload: batch } = await client.next(({ type, payload: { ops } }) => type === 'transcript.ops' && (ops as Op[]).some(isRemoval))
  const before = (batch.ops as Op[]).slice(0, (batch.ops as Op[]).findIndex(isRemoval))
  const calls = before.flatMap(({ op, turnId, frame }) => (op === 'frame.upsert' ? [[turnId, frame?.toolCallId]] : []))
  assert.deepEqual(calls, [['t0', snapshot.interactions[0].toolCallId]])
})

test('what was asked before a fork is of the session that shows it: of the source there, of the fork in a page and in a baseline', async t => {
  const { rest, connect, id, asks } = await start(t)
  await asks()

  const fork = (await rest.json('POST', `/api/v1/sessions/${id}:fork`)).data as { id: string }

  const sessionsIn = (interactions: readonly Shown[]) => interactions.map(({ request }) => [request?.sessionId, request?.session_id])
  const page = async (session_id: string) => {
    const { data } = await rest.json('GET', `/api/v1/sessions/${session_id}/transcript?agent_id=main`)
    return sessionsIn((data as { interactions: Shown[] }).interactions)
  }
  assert.deepEqual(await page(fork.id), [[fork.id, fork.id]])
  const client = await connect()
  await client.request('subscribe_v2', { session_id: fork.id, transcript: { '*': 'block' } })
  const { payload: reset } = await client.next('transcript.reset')
  assert.deepEqual(sessionsIn(reset.snapshot.interactions), [[fork.id, fork.id]])
  assert.deepEqual(await page(fork.id), [[fork.id, fork.id]], 'as long as it is loaded, too')
  assert.deepEqual(await page(id), [[id, id]])
})

test('what a turn asked stays in the transcripts of clients when words that it streamed are taken back', async t => {
  const call = {
    name: 'AskUserQuestion',
    id: 'ask',
    args: { questions: [{ question: 'Which?', options: [{ label: 'One' }, { label: 'Two' }] }] }
  }
  const steps: Step[][] = [[{ tools: [call] }], [{ text: 'lost words' }, { hang: true }, { cut: true }], [{ text: 'other words' }]]
  const { home, place, upstream } = await crashScene(t, { model: () => steps.shift() ?? [], toml: 'default_permission_mode = "yolo"' })
  const { rest, connect } = await startTestKernel(t, { packs: await loadDefaultPacks(), home, config: { agent: { retry_base_ms: 1 } } })
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }
  const session = `/api/v1/sessions/${id}`
  const watcher = await connect()
  await watcher.request('subscribe', { session_ids: [id] })
  const grades = ['turn', 'block', 'delta']
  const clients = await Promise.all(grades.map(() => connect()))
  for (const [at, client] of clients.entries()) {
    await client.request('subscribe_v2', { session_id: id, transcript: { '*': grades[at]! } })
  }

  await rest.json('POST', `${session}/prompts`, { content: [{ type: 'text', text: 'go' }] })
  const { payload } = await watcher.next('event.question.requested')
  await rest.json('POST', `${session}/questions/${payload.question_id}`, { answers: { q_0: { kind: 'single', option_id: 'opt_0_0' } } })
  await watcher.next(({ type, payload: piece }) => type === 'assistant.delta' && piece.delta.includes('words'))
  upstream.release()
  await watcher.next('turn.ended')

  const page = (await rest.json('GET', `${session}/transcript?agent_id=main`)).data as Baseline & { seq: number }
  assert.deepEqual(
    page.interactions.map(({ interactionId, state }) => [interactionId, state]),
    [[payload.question_id, 'answered']]
  )
  for (const [at, client] of clients.entries()) {
    await client.request('unsubscribe_v2', { session_id: 'session_none' }) // all that was sent before has come
    let transcript: Transcript | undefined
    for (const { type, payload: frame } of client.frames) {
      if (type === 'transcript.reset') transcript = new Transcript(frame.snapshot)
      else if (type === 'transcript.ops') for (const op of frame.ops) transcript?.apply(op)
    }
    assert.deepEqual(transcript?.view().interactions, page.interactions, `grade ${grades[at]}`)
    if (grades[at] !== 'turn') assert.deepEqual(transcript?.view().items, page.items, `grade ${grades[at]}`)
  }
})
