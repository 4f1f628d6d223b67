/** Live and cold are the same: the records of an agent alone give every durable event that clients were told, in order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentEvents } from '../../../features/agent/contract.ts'
import { eventsOf } from '../../../features/agent/events.ts'
import { Conversation } from '../../../features/history/conversation.ts'
import type { HistoryRecord } from '../../../features/history/index.ts'
import { abortPrompt, steerPrompts } from '../../../features/prompts/index.ts'
import { sessionMetaUpdated, workChanged } from '../../../features/sessions/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { runner, type Started, startAgent, wireOf } from './start.ts'

interface Told {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

function eventsFrom(records: readonly HistoryRecord[]): Told[] {
  const before = new Conversation()
  return records.flatMap(record => {
    const events = eventsOf(record, before, { id: 'main' })
    before.apply(record)
    return events.map(({ type, payload }) => ({ type, payload: JSON.parse(JSON.stringify(payload)) as Told['payload'] }))
  })
}

const durable = new Set<string>(Object.values(agentEvents).flatMap(spec => (spec.durable ? [spec.type] : [])))

const told = ({ events }: Started): Told[] =>
  events.flatMap(({ type, payload }) =>
    durable.has(type) || type === sessionMetaUpdated.type || type === workChanged.type
      ? [{ type, payload: JSON.parse(JSON.stringify(payload)) as Told['payload'] }]
      : []
  )

async function agrees(agent: Started): Promise<void> {
  const cold = eventsFrom(await wireOf(agent))
  const live = told(agent)
  assert.deepEqual(
    cold.map(event => event.type),
    live.map(event => event.type)
  )
  for (const [at, { type, payload }] of cold.entries()) {
    if (durable.has(type)) assert.deepEqual(payload, live[at]?.payload, type)
  }
}

/** Calls are described and shown; one is changed and refused. */
const tools = runner(async ({ calls, report }) => {
  const outcomes = []
  for (const [at, call] of calls.entries()) {
    const display = { kind: 'command', command: call.name }
    await report({
      type: 'started',
      call,
      args: { at },
      description: `Running ${call.name}`,
      display,
      ...(at === 1 ? { changed_by: ['a guard'], refused: true } : {})
    })
    await report({ type: 'progress', call, update: { kind: 'stdout', text: 'x' } })
    const result = { output: `${call.name} ${at}`, ...(at === 1 ? { is_error: true } : {}), note: 'for the model' }
    await report({ type: 'finished', call, result })
    outcomes.push({ call, result })
  }
  return outcomes
})

test('turns with tools, retries, a queue and a failure', async t => {
  const llm = scriptedLlm(
    failure({ status: 503 }),
    toolCalls({ id: 'a', name: 'Echo' }, { id: 'b', name: 'Echo' }),
    [
      { type: 'thinking', text: 'hm' },
      { type: 'text', text: 'done' },
      { type: 'usage', usage: { inputOther: 7, output: 3, inputCacheRead: 1, inputCacheCreation: 0 } },
      { type: 'finish', reason: 'completed', raw_reason: 'stop' }
    ],
    'second',
    failure({ retryable: false })
  )
  const agent = await startAgent(t, llm, { packs: [tools] })
  await Promise.all([agent.prompt('one'), agent.prompt('two')])
  await agent.prompt('three')
  await agent.settled(3)
  await agrees(agent)

  const records = await wireOf(agent)
  const begins = records.filter(({ type }) => type === 'tool.begin') as (HistoryRecord & Record<string, unknown>)[]
  const shown = ['Running Echo', { kind: 'command', command: 'Echo' }]
  assert.deepEqual(
    begins.map(({ description, display, changed_by, refused }) => [description, display, changed_by, refused]),
    [
      [...shown, undefined, undefined],
      [...shown, ['a guard'], true]
    ]
  )
  const events = eventsFrom(records)
  const starts = events.filter(({ type }) => type === agentEvents.toolCallStarted.type)
  assert.deepEqual(
    starts.map(({ payload }) => [payload.description, payload.display]),
    [shown, shown]
  )
  const { payload } = events.filter(({ type }) => type === agentEvents.stepCompleted.type)[1] ?? {}
  assert.deepEqual([payload?.finishReason, payload?.providerFinishReason, payload?.rawFinishReason], ['end_turn', 'completed', 'stop'])
})

test('a prompt that is steered, one that is withdrawn, and an abort', async t => {
  const go = latch()
  const never = new Promise<never>(() => undefined)
  const llm = scriptedLlm(
    [
      { type: 'text', text: 'first' },
      { type: 'wait', until: go.opened },
      { type: 'finish', reason: 'completed' }
    ],
    [
      { type: 'text', text: 'so far' },
      { type: 'wait', until: never }
    ]
  )
  const agent = await startAgent(t, llm)
  const params = { session_id: agent.session_id }
  const one = await agent.prompt('one')
  const two = await agent.prompt('two')
  const three = await agent.prompt('three')
  await agent.call(steerPrompts, { params, body: { prompt_ids: [two.prompt_id] } })
  await agent.call(abortPrompt, { params: { ...params, prompt_id: three.prompt_id } })
  go.open()
  await agent.waitFor(event => event.type === 'assistant.delta' && (event.payload as { delta: string }).delta === 'so far')
  await agent.call(abortPrompt, { params: { ...params, prompt_id: one.prompt_id } })
  await agrees(agent)
})
