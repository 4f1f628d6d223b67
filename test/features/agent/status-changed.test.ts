/** `event.session.status_changed`: the work of a session in one word, told when it changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages } from '../../../features/messages/index.ts'
import { abortSession } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, runner, type Started, startAgent } from './start.ts'

type Changed = { readonly status: string; readonly previous_status: string; readonly current_prompt_id?: string }

const statuses = ({ events }: Started) =>
  events.flatMap(({ type, payload }) => (type === 'event.session.status_changed' ? [payload as unknown as Changed] : []))
const steps = (agent: Started) => statuses(agent).map(({ status, previous_status }) => `${previous_status} > ${status}`)

const hanging = [{ type: 'wait', until: new Promise<never>(() => undefined) } as const]

test('a turn is told as running with its prompt, then as idle', async t => {
  const agent = await startAgent(t, scriptedLlm('Hello'))
  const { prompt_id } = await agent.prompt('hi')
  await agent.settled(1)
  assert.deepEqual(
    statuses(agent).map(({ status, previous_status, current_prompt_id }) => ({ status, previous_status, current_prompt_id })),
    [
      { status: 'running', previous_status: 'idle', current_prompt_id: prompt_id },
      { status: 'idle', previous_status: 'running', current_prompt_id: undefined }
    ]
  )
})

test('a turn that the user stops leaves the session aborted, until the next one runs', async t => {
  const agent = await startAgent(t, scriptedLlm(hanging, 'next answer'))
  await agent.prompt('go')
  await agent.waitFor(({ type }) => type === 'turn.step.started')
  await agent.call(abortSession, { params: { session_id: agent.session_id } })
  await agent.settled(1)
  await agent.prompt('again')
  await agent.settled(2)
  assert.deepEqual(steps(agent), ['idle > running', 'running > aborted', 'aborted > running', 'running > idle'])
})

test('a killed server: what clients heard last is mended once at the next start', async t => {
  const stuck = runner(async ({ calls, report, signal }) => {
    for (const call of calls) await report({ type: 'started', call, args: {} })
    await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    return []
  })
  const first = await startAgent(t, scriptedLlm(toolCalls({ id: 'a', name: 'Echo' })), { packs: [stuck] })
  const { session_id } = first
  await first.prompt('one')
  await first.waitFor(({ type }) => type === 'tool.call.started')
  const home = await copyOfHome(first.home)

  const second = await startAgent(t, scriptedLlm('answer'), { home, session_id })
  await second.call(listMessages, { params: { session_id } })
  await second.waitFor(({ type }) => type === 'event.session.status_changed')
  assert.deepEqual(steps(second), ['running > aborted'])
  await second.stop()

  const third = await startAgent(t, scriptedLlm('answer'), { home, session_id })
  await third.call(listMessages, { params: { session_id } })
  await third.prompt('two')
  await third.settled(1)
  assert.deepEqual(steps(third), ['aborted > running', 'running > idle'])
})

test('turns that clients heard of are not told again when a killed server starts anew', async t => {
  const first = await startAgent(t, scriptedLlm(hanging, 'next answer'))
  const { session_id } = first
  await first.prompt('go')
  await first.waitFor(({ type }) => type === 'turn.step.started')
  await first.call(abortSession, { params: { session_id } })
  await first.settled(1)
  await first.prompt('again')
  await first.settled(2)
  await first.call(readSnapshot, { params: { session_id } }) // everything up to here is on disk

  const second = await startAgent(t, scriptedLlm('answer'), { home: await copyOfHome(first.home), session_id })
  await second.call(listMessages, { params: { session_id } })
  assert.deepEqual(steps(second), [])
})
