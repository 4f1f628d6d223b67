/** How fast a login polls, on a scripted clock: what the authorization server asked for, never faster. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeviceCode } from '../../../features/oauth/account-service.ts'
import { LoginFlow } from '../../../features/oauth/flow.ts'
import { AccountProblem } from '../../../features/oauth/problem.ts'

const codeOf = (n: number, interval: number): DeviceCode => ({
  device_code: `device-code-${n}`,
  user_code: `CODE-${n}`,
  verification_uri: 'https://login.example/device',
  verification_uri_complete: `https://login.example/device?user_code=CODE-${n}`,
  expires_in: 900,
  interval
})

/** Plays the answers (`error` codes; the last one repeats) and writes down waits, polls and new codes until the flow is over. */
async function play(answers: readonly string[], intervals: readonly number[]): Promise<{ log: string[]; flow: LoginFlow }> {
  const log: string[] = []
  let now = 0
  let polls = 0
  let codes = 0
  const flow = new LoginFlow(
    {
      provider: 'p',
      oauth_host: 'https://login.example',
      client_id: 'client-1',
      now: () => new Date(now),
      wait: async seconds => {
        log.push(`wait ${seconds}`)
        now += seconds * 1000
      },
      service: {
        async deviceCode() {
          log.push('code')
          return codeOf(++codes, intervals[codes] ?? 5)
        },
        async deviceToken(_host, _client, device_code) {
          log.push(`poll ${device_code.slice(-1)}`)
          const error = answers[Math.min(polls++, answers.length - 1)] ?? ''
          if (error === '') return { access_token: 'a', refresh_token: 'r', expires_at: 0, scope: '', token_type: '', expires_in: 1 }
          throw new AccountProblem(error, { status: 400, error })
        }
      },
      granted: async () => void log.push('granted'),
      failed: error => assert.fail(error as Error)
    },
    codeOf(0, intervals[0] ?? 5)
  )
  while (flow.status === 'pending') await new Promise(resolve => setImmediate(resolve))
  return { log, flow }
}

test('before each poll the interval is waited for; slow_down makes it longer for good, a new code at most longer', async () => {
  const answers = ['authorization_pending', 'slow_down', 'slow_down', 'expired_token', 'authorization_pending', 'expired_token', '']

  const { log } = await play(answers, [5, 1, 30])

  const expected = ['wait 5', 'poll 0', 'wait 5', 'poll 0', 'wait 10', 'poll 0', 'wait 15', 'poll 0', 'code']
  const rest = ['wait 15', 'poll 1', 'wait 15', 'poll 1', 'code', 'wait 30', 'poll 2', 'granted']
  assert.deepEqual(log, [...expected, ...rest])
})

test('after fifteen minutes there is no poll any more, however often the code was renewed', async () => {
  for (const answer of ['authorization_pending', 'expired_token']) {
    const { log, flow } = await play([answer], [400, 400, 400])

    assert.deepEqual(
      log.filter(line => line !== 'code'),
      ['wait 400', 'poll 0', 'wait 400', `poll ${answer === 'expired_token' ? 1 : 0}`, 'wait 100']
    )
    assert.deepEqual([flow.status, flow.snapshot().expires_at], ['expired', '1970-01-01T00:15:00.000Z'])
  }
})

test('an interval longer than the login ends it without a poll', async () => {
  const { log, flow } = await play([''], [5000])

  assert.deepEqual([log, flow.status], [['wait 900'], 'expired'])
})
