import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CallPorts, runCalls } from '../../../features/agent/calls.ts'
import { runTurn, type TurnPorts } from '../../../features/agent/loop.ts'
import { retryDelay } from '../../../features/agent/retry.ts'
import { runStep, type StepPorts } from '../../../features/agent/step.ts'
import type { HistoryRecord } from '../../../features/history/index.ts'
import type { LlmRequest } from '../../../features/llm/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, type Reply, scriptedLlm, testModel, toolCalls } from '../../helpers/scripted-llm.ts'

const request: LlmRequest = { model: testModel, system: '', messages: [], tools: [], cache_key: 's', effort: 'off' }

/** A record as the tests name it: a step that was not completed says why. */
function what(record: HistoryRecord): string {
  return ['disk', record.type, record.retry ? 'retry' : record.interrupted].filter(Boolean).join(' ')
}

/** Ports in memory: what was recorded and emitted, in order. */
function fake(...replies: Reply[]) {
  const log: string[] = []
  const ports: TurnPorts = {
    stream: scriptedLlm(...replies).llm.stream,
    runTools: async (calls, _signal, report) => {
      for (const call of calls) await report({ type: 'finished', call, result: { output: 'ok' } })
      return []
    },
    record: async (...records) => void log.push(...records.map(what)),
    emit: name => void log.push(name),
    uniqueCallId: id => id,
    stepBegin: async () => undefined,
    beforeStep: async () => [],
    request: async () => request,
    modelError: async () => undefined,
    answered: () => undefined,
    afterStep: async () => undefined,
    closes: () => false,
    more: async () => false,
    retrying: () => undefined,
    openCalls: () => [],
    told: () => undefined,
    describe: error => ({ code: 'internal', message: String(error), retryable: false })
  }
  const run = (signal = new AbortController().signal, change: Partial<TurnPorts> = {}) =>
    runTurn({ ...ports, ...change }, { turn_id: 0, max_steps: 0, max_attempts: 3, retry_base_ms: 0 }, signal)
  return { log, run }
}

test('text is told when its step is on disk; everything else is told from records', async () => {
  const { log, run } = fake(toolCalls({ id: 'a', name: 'Echo' }), 'done')
  assert.deepEqual(await run(), { reason: 'completed', steps: 2, text: 'done', truncated: false, unsaved: [] })
  assert.deepEqual(
    log.filter(line => line !== 'toolCallDelta'),
    [
      'disk step.begin',
      'disk step.message',
      'disk tool.result',
      'disk step.end',
      'disk step.begin',
      'assistantDelta',
      'disk step.message',
      'disk step.end'
    ]
  )
})

test('a turn never rejects: a failing disk, request or hook becomes a failed result', async () => {
  const broken = async () => {
    throw new Error('broken')
  }
  for (const change of [{ record: broken }, { request: broken }, { afterStep: broken }, { beforeStep: broken }, { more: broken }]) {
    const result = await fake('hi').run(undefined, change as Partial<TurnPorts>)
    assert.equal(result.reason, 'failed', Object.keys(change)[0])
    assert.equal(result.error?.code, 'internal')
  }
})

test('a signature seals its thinking; extras stay with their call', async () => {
  const recorded: unknown[] = []
  const { run } = fake(
    [
      { type: 'thinking', text: 'first ' },
      { type: 'thinking', text: 'thought' },
      { type: 'thinking', text: '', signature: 'sig-1' },
      { type: 'thinking', text: '', signature: 'sig-2' },
      { type: 'thinking', text: 'third' },
      { type: 'tool_call', id: 'a', name: 'Echo', extras: { seal: 'sig-3' } },
      { type: 'tool_arguments', id: 'a', text: '{}' },
      { type: 'finish', reason: 'tool_calls' }
    ],
    'done'
  )
  await run(undefined, { record: async (...records) => void recorded.push(...records) })

  const message = recorded.find(record => (record as { type: string }).type === 'step.message')
  assert.deepEqual(message, {
    type: 'step.message',
    turn_id: 0,
    step: 1,
    content: [
      { type: 'thinking', thinking: 'first thought', signature: 'sig-1' },
      { type: 'thinking', thinking: '', signature: 'sig-2' },
      { type: 'thinking', thinking: 'third' }
    ],
    tool_calls: [{ id: 'a', name: 'Echo', arguments: '{}', extras: { seal: 'sig-3' } }]
  })
})

test('a repaired request is sent again in the same step and counts no attempt', async () => {
  const { log, run } = fake(failure({ retryable: false }), 'fine')
  const result = await run(undefined, { modelError: async () => 'retry' })
  assert.equal(result.reason, 'completed')
  assert.equal(log.filter(line => line === 'disk step.begin').length, 1)
  assert.ok(!log.includes('disk step.end retry'))
})

test('repairs are limited, and `fail` ends the turn although the failure is retryable', async () => {
  assert.equal((await fake(failure({ retryable: false })).run(undefined, { modelError: async () => 'retry' })).reason, 'failed')
  const { log, run } = fake(failure())
  assert.equal((await run(undefined, { modelError: async () => 'fail' })).reason, 'failed')
  assert.ok(!log.includes('disk step.end retry'))
})

test('an abort while waiting for the next attempt ends the turn at once', async () => {
  const controller = new AbortController()
  const { log, run } = fake(failure({ retry_after_ms: 3_600_000 }))
  const running = run(controller.signal, {
    modelError: async () => {
      setImmediate(() => controller.abort())
      return undefined
    }
  })
  assert.deepEqual(await running, { reason: 'cancelled', steps: 1, text: '', truncated: false, unsaved: [] })
  assert.equal(log.at(-1), 'disk step.end aborted')
})

test('an abort before the first step announces no step', async () => {
  const controller = new AbortController()
  controller.abort()
  const { log, run } = fake('hi')
  assert.deepEqual(await run(controller.signal), { reason: 'cancelled', steps: 0, text: '', truncated: false, unsaved: [] })
  assert.deepEqual(log, [])
})

test('the turn goes on as long as something is added at its end', async () => {
  let more = 2
  const { run } = fake('hi')
  assert.deepEqual(await run(undefined, { more: async () => more-- > 0 }), {
    reason: 'completed',
    steps: 3,
    text: 'hi',
    truncated: false,
    unsaved: []
  })
})

test('delays double up to 32 seconds with a quarter at random; the upstream may name its own', () => {
  const error = { code: 'x', message: '', name: 'E', retryable: true }
  assert.deepEqual(
    [1, 2, 3, 9].map(attempt => retryDelay(attempt, error, 500, () => 0)),
    [500, 1000, 2000, 32_000]
  )
  assert.equal(
    retryDelay(1, error, 500, () => 1),
    625
  )
  assert.equal(retryDelay(5, { ...error, retry_after_ms: 7000 }, 500), 7000)
})

test('text that waits to be told with more is told when its attempt fails: it may be all that there will be', async () => {
  const told: unknown[] = []
  const ports: StepPorts = {
    stream: scriptedLlm([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }, ...failure()]).llm.stream,
    emit: (_name, payload) => void told.push(payload),
    uniqueCallId: id => id
  }
  const outcome = await runStep(ports, request, 0, new AbortController().signal, Promise.resolve())
  assert.deepEqual(outcome.kind === 'error' && outcome.content, [{ type: 'text', text: 'ab' }])
  assert.deepEqual(told, [
    { turnId: 0, delta: 'a' },
    { turnId: 0, delta: 'b' }
  ])
})

test('progress of a call is told when clients have heard of its begin', async () => {
  const told: string[] = []
  const begun = latch()
  const call = { id: 'a', name: 'Echo', arguments: '{}' }
  const ports: CallPorts = {
    runTools: async (_calls, _signal, report) => {
      void report({ type: 'started', call, args: {} })
      await report({ type: 'progress', call, update: { kind: 'stdout', text: 'x' } })
      begun.open()
      return [{ call, result: { output: 'ok' } }]
    },
    record: async () => {
      await begun.opened
      told.push('begun')
    },
    emit: name => void told.push(name)
  }
  await runCalls(ports, { turn_id: 0, step: 1 }, [call], new AbortController().signal)
  assert.deepEqual(told, ['begun', 'toolProgress'])
})
