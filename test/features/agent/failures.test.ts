/** A failure is told to whoever runs the server, and clients can read the newest one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureLine, loudRetry } from '../../../features/agent/failure.ts'
import type { LlmPart } from '../../../features/llm/index.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { echoRunner, type Started, startAgent } from './start.ts'

const failing = (message: string, retryable = false, more: object = {}): readonly LlmPart[] => [
  { type: 'error', error: { code: 'provider.auth_error', name: 'AuthError', message, retryable, ...more } }
]

const statusOf = async ({ call, session_id }: Started) => (await call(readStatus, { params: { session_id } })).data
const snapshotOf = async ({ call, session_id }: Started) => (await call(readSnapshot, { params: { session_id } })).data

test('a turn that failed is a warning in the log and a line at the terminal, with session, provider, model, code and what to look at', async t => {
  const logged: string[] = []
  const told: string[] = []
  const started = await startAgent(t, scriptedLlm(failing('the provider answered HTTP 401: no', false, { status: 401 })), { logged, told })

  await started.prompt('go')
  await started.settled(1)

  const text = `${started.session_id}: the turn failed [provider.auth_error] at provider test, model test: the provider answered HTTP 401: no (check the credential of provider test)`
  assert.deepEqual(told, [`warning: ${text}`])
  const { level, msg, ...facts } = JSON.parse(logged.find(line => line.includes('the turn failed')) ?? '{}')
  assert.deepEqual([level, msg], [40, text])
  const { session_id, agent_id, turn_id, code, status, provider_id, model } = facts
  assert.deepEqual(
    { session_id, agent_id, turn_id, code, status, provider_id, model },
    {
      session_id: started.session_id,
      agent_id: 'main',
      turn_id: 0,
      code: 'provider.auth_error',
      status: 401,
      provider_id: 'test',
      model: 'test'
    }
  )
})

test('status and snapshot show the newest failure, the same after a restart, until a turn completes', async t => {
  const first = await startAgent(t, scriptedLlm(failing('no', false, { status: 401 })))
  assert.equal('last_failure' in (await statusOf(first)), false)
  await first.prompt('go')
  await first.settled(1)

  const { last_failure } = await statusOf(first)
  const { at, ...failure } = last_failure ?? {}
  assert.ok(!Number.isNaN(Date.parse(at ?? '')))
  assert.deepEqual(failure, {
    turn_id: 0,
    code: 'provider.auth_error',
    message: 'no',
    name: 'AuthError',
    retryable: false,
    status: 401,
    provider_id: 'test',
    model: 'test'
  })
  assert.deepEqual((await snapshotOf(first)).last_failure, last_failure)

  await first.stop()
  const second = await startAgent(t, scriptedLlm('well'), { home: first.home, session_id: first.session_id })
  assert.deepEqual((await statusOf(second)).last_failure, last_failure)
  await second.prompt('again')
  await second.settled(1)
  assert.equal('last_failure' in (await statusOf(second)), false)
  assert.equal('last_failure' in (await snapshotOf(second)), false)
})

test('every attempt that is followed by another is an info line; the second that fails in the same way is told at the terminal', async t => {
  const logged: string[] = []
  const told: string[] = []
  const busy = failing('busy', true)
  const started = await startAgent(t, scriptedLlm(failing('odd', true), busy, busy, busy, 'well'), { logged, told })

  await started.prompt('go')
  await started.settled(1)

  const infos = logged.map(line => JSON.parse(line)).filter(({ level, msg }) => level === 30 && /^\S+ attempt /.test(msg))
  assert.deepEqual(
    infos.map(({ failed_attempt, max_attempts }) => [failed_attempt, max_attempts]),
    [1, 2, 3, 4].map(n => [n, 10])
  )
  assert.equal(told.length, 1)
  assert.match(
    told[0]!,
    /^warning: session_\S+: failed twice in the same way, 7 more attempts in the next \d+ s \[provider\.auth_error\] at provider test, model test: busy/
  )
})

test('an answer between two failures of one kind makes the second a first one', async t => {
  const told: string[] = []
  const busy = failing('busy', true)
  const llm = scriptedLlm(busy, toolCalls({ id: 'a', name: 'Echo' }), busy, 'well')
  const started = await startAgent(t, llm, { told, logged: [], packs: [echoRunner()] })

  await started.prompt('go')
  await started.settled(1)

  assert.equal(llm.requests.length, 4)
  assert.deepEqual(told, [])
})

test('while attempts go on the failure says so; an abort leaves it without them, an answer takes it away', async t => {
  const held = new Promise<never>(() => undefined)
  const llm = scriptedLlm(failing('busy', true), [{ type: 'wait', until: held }], failing('busy', true), 'well')
  const started = await startAgent(t, llm)
  const { prompt_id } = await started.prompt('go')
  await llm.arrived(1)

  const { retry, message } = (await statusOf(started)).last_failure ?? {}
  assert.deepEqual([message, retry?.failed_attempt, retry?.max_attempts], ['busy', 1, 10])

  await started.rest.json('POST', `/api/v1/sessions/${started.session_id}/prompts/${prompt_id}:abort`, {})
  const left = (await statusOf(started)).last_failure
  assert.deepEqual([left?.message, left?.retry], ['busy', undefined])

  await started.prompt('again')
  await started.settled(2)
  assert.equal((await statusOf(started)).last_failure, undefined)
})

test('a stop says which turns it cuts and how many prompts wait for the next start', async t => {
  const told: string[] = []
  const llm = scriptedLlm([{ type: 'wait', until: new Promise<never>(() => undefined) }])
  const started = await startAgent(t, llm, { told })
  await started.prompt('go')
  await llm.arrived(0)
  await started.prompt('and then')

  await started.stop()

  assert.deepEqual(told, [`info: cutting 1 running turn: ${started.session_id}; 1 prompt that waits begins with the next start`])
})

test('a long wait is told at once, and how long all attempts that are left take', () => {
  const times = { failed_attempt: 1, max_attempts: 10, delay_ms: 500 }
  assert.equal(loudRetry({ ...times, same: 1 }, 500), undefined)
  assert.equal(loudRetry({ ...times, same: 1, delay_ms: 3_600_000 }, 500), 'attempt 1 failed, the next one is in 3600 s')
  assert.equal(
    loudRetry({ ...times, failed_attempt: 2, delay_ms: 1_000, same: 2 }, 500),
    'failed twice in the same way, 8 more attempts in the next 127 s'
  )
  assert.equal(loudRetry({ ...times, failed_attempt: 9, delay_ms: 32_000, same: 9 }, 500), undefined)
})

test('a line names the agent beside the main one, and gives a hint where there is one', () => {
  const host = (id: string) => ({ id, session: { id: 's' } }) as never
  const line = (id: string, code: string, more: object = {}) => failureLine(host(id), 'the turn failed', { code, message: 'why', ...more })
  assert.equal(line('a1', 'internal'), 's, agent a1: the turn failed [internal]: why')
  assert.equal(line('main', 'provider.rate_limit', { provider_id: 'p' }), 's: the turn failed [provider.rate_limit] at provider p: why')
  assert.equal(line('main', 'provider.auth_error'), 's: the turn failed [provider.auth_error]: why (check the credential of the provider)')
  assert.equal(
    line('main', 'auth.token_missing', { provider_id: 'p' }),
    's: the turn failed [auth.token_missing] at provider p: why (give provider p an api_key, or auth = "none" if it takes none)'
  )
})
