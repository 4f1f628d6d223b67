/** A login as a web client lives through it: dialog, account page, turns with the managed model, renewal, refusal, logout. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RestClient } from '../../kernel/testing.ts'
import { account, MANAGED, start_time } from '../helpers/account.ts'
import { serve } from '../helpers/cli.ts'
import type { Reply } from '../helpers/conversation.ts'
import { withEnvironment } from '../helpers/environment.ts'
import { type FakeOauth, fakeOauth, granted, refused } from '../helpers/fake-oauth.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { Page } from '../helpers/page.ts'
import { frameJudge, newSession, prompt } from '../helpers/scene.ts'
import { freshDir } from '../helpers/temp.ts'

const hour = 3_600_000
const minute = 60_000

test('a web client logs in, looks around, talks, is renewed silently, is refused and logs out', async t => {
  const models = await fakeUpstream(t, [[{ text: 'hello' }]])
  const fake = await fakeOauth(
    t,
    { poll: [refused('authorization_pending')], me: [{ body: { user_id: 'u', nickname: 'Nick', user_level_name: 'Pro' } }] },
    { models_at: new URL(models.url).origin }
  )
  const server = await account(t, { fake })
  const { api, clock } = server
  const page = await Page.open(t, server, { judge: await frameJudge(server) })
  const cwd = join(server.home, 'project')
  await mkdir(cwd)
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const say = async (text: string) => {
    const from = page.frames.length
    const { prompt_id } = await prompt(page, id, text)
    const over = await page.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === prompt_id, from)
    await page.settled()
    return over.payload.reason
  }
  const refusal = async () => {
    const { code, details } = await api('POST', `/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'hi' }] })
    return [code, details] as const
  }

  // Before: nothing to talk to.
  assert.deepEqual((await api('GET', '/auth')).data, { ready: false, providers_count: 0, default_model: null, managed_provider: null })
  assert.deepEqual(await refusal(), [40110, undefined])

  // The dialog is opened, closed, and opened again.
  const { region } = (await api('GET', '/oauth/region')).data
  const first = (await api('POST', '/oauth/login', { region })).data
  assert.deepEqual([first.status, first.user_code], ['pending', 'CODE-1'])
  assert.deepEqual((await api('DELETE', '/oauth/login')).data, { cancelled: true, status: 'cancelled' })
  const second = (await api('POST', '/oauth/login', { region })).data
  assert.deepEqual([second.status, second.user_code], ['pending', 'CODE-2'])
  await fake.reached('poll', 2)
  assert.equal((await api('GET', '/oauth/login')).data.status, 'pending')

  // The user grants it in another tab.
  fake.answer('poll', [granted()])
  assert.deepEqual([(await server.settled()).status, (await server.settled()).flow_id], ['authenticated', second.flow_id])
  const changed = await page.next('event.config.changed')
  assert.ok(changed.payload.changed_fields.includes('providers'))
  assert.ok(MANAGED in changed.payload.config.providers)

  // It reads everything again.
  assert.deepEqual((await api('GET', '/auth')).data, {
    ready: true,
    providers_count: 1,
    default_model: 'svc-code/large',
    managed_provider: { name: MANAGED, status: 'authenticated' }
  })
  assert.equal((await api('GET', '/oauth/userinfo')).data.userInfo.nickname, 'Nick')
  const items = (await api('GET', '/models')).data.items as { model: string; provider: string }[]
  assert.deepEqual(
    items.map(({ model, provider }) => [model, provider]),
    [
      ['svc-code/large', MANAGED],
      ['svc-code/small', MANAGED]
    ]
  )
  const config = (await api('GET', '/config')).data
  assert.deepEqual([config.default_model, config.providers[MANAGED].has_api_key], ['svc-code/large', false])
  assert.deepEqual((await api('GET', '/oauth/usage')).data, { kind: 'ok', summary: null, limits: [], extra_usage: null })
  const [provider] = (await api('GET', '/providers')).data.items as { id: string; status: string }[]
  assert.deepEqual([provider?.id, provider?.status], [MANAGED, 'connected'])

  // The provider belongs to the login.
  const path = `/providers/${encodeURIComponent(MANAGED)}`
  const replaced = { type: 'svc', base_url: 'http://127.0.0.1:9', models: [{ model: 'x', max_context_size: 1 }] }
  assert.equal((await api('PUT', path, replaced)).code, 40003)
  assert.equal((await api('DELETE', path)).code, 40003)
  assert.deepEqual((await api('GET', '/config')).data, config)

  // A turn, and one after the token has run out.
  assert.equal(await say('hi'), 'completed')
  assert.equal(models.requests[0]?.headers.authorization, 'Bearer access-token-1')
  assert.deepEqual([models.requests[0]?.path, models.requests[0]?.body.model], ['/v1/chat/completions', 'large'])
  assert.equal(fake.asked('refresh').length, 0)
  clock.now += hour
  assert.equal(await say('still there?'), 'completed')
  assert.equal(models.requests.at(-1)?.headers.authorization, 'Bearer access-token-renewed-1')
  assert.equal(fake.asked('refresh').length, 1)

  // The grant is taken back: the turn fails, the next one is not begun.
  fake.answer('refresh', [refused('invalid_grant')])
  clock.now += hour
  const asked = models.requests.length
  assert.equal(await say('and now?'), 'failed')
  assert.deepEqual(await refusal(), [40112, { provider_id: MANAGED }])
  assert.equal(models.requests.length, asked)
  const { ready, managed_provider } = (await api('GET', '/auth')).data
  assert.deepEqual([ready, managed_provider], [false, { name: MANAGED, status: 'revoked' }])

  // Logging in again helps; logging out leaves nothing.
  await server.logIn('again')
  assert.equal(await say('once more'), 'completed')
  assert.equal(models.requests.at(-1)?.headers.authorization, 'Bearer access-token-again')
  assert.deepEqual((await api('POST', '/oauth/logout', {})).data, { logged_out: true, provider: MANAGED })
  assert.deepEqual(await refusal(), [40110, undefined])
  assert.deepEqual((await api('GET', '/auth')).data, { ready: false, providers_count: 0, default_model: null, managed_provider: null })
  clock.now += 5 * minute
  assert.equal((await api('GET', '/oauth/login')).data.status, 'authenticated', 'the last flow is what it was')
  assert.deepEqual(page.problems, [])
  assert.ok(clock.now > start_time)
  assert.doesNotMatch(JSON.stringify(page.frames), /access-token|refresh-token|device-code-/)
})

interface Server {
  api(method: string, path: string, body?: unknown): Promise<Reply>
  settled(): Promise<Reply['data']>
}

/** Another process on the home; its account is set up in config.toml. */
async function process(t: TestContext, home: string): Promise<Server> {
  const { url, token } = await serve(t, home, '--port', '0')
  const rest = new RestClient(url, token)
  t.after(() => rest.close())
  const api: Server['api'] = (method, path, body) => rest.json(method, `/api/v1${path}`, body)
  const settled = async () => {
    for (;;) {
      const { data } = await api('GET', '/oauth/login')
      if (data?.status !== 'pending') return data
    }
  }
  return { api, settled }
}

async function homeFor({ oauth_host, api_base_url }: FakeOauth): Promise<string> {
  const home = await freshDir()
  const lines = ['[packs.config.oauth]', 'client_id = "client-1"', `oauth_host = "${oauth_host}"`, `api_base_url = "${api_base_url}"`]
  await writeFile(join(home, 'config.toml'), [...lines, 'poll_unit_ms = 1', ''].join('\n'))
  return home
}

test('two servers on one home: a login, a renewal and a logout of one are those of the other', async t => {
  withEnvironment(t, { SVC_CODE_OAUTH_HOST: undefined, SVC_CODE_API_BASE_URL: undefined, SVC_CODE_OAUTH_CLIENT_ID: undefined })
  const fake = await fakeOauth(t, { poll: [granted()] })
  const home = await homeFor(fake)
  const [one, two] = [await process(t, home), await process(t, home)]

  assert.equal((await one.api('POST', '/oauth/login', { region: 'global' })).data.status, 'pending')
  assert.equal((await one.settled()).status, 'authenticated')

  // Asked at once, before any watcher has looked.
  assert.equal((await two.api('GET', '/oauth/usage')).data.kind, 'ok')
  assert.deepEqual((await two.api('GET', '/auth')).data, {
    ready: true,
    providers_count: 1,
    default_model: 'svc-code/large',
    managed_provider: { name: MANAGED, status: 'authenticated' }
  })
  assert.equal((await two.api('POST', '/oauth/login', {})).data.status, 'authenticated')
  assert.equal((await two.api('GET', '/oauth/region')).data.region, 'global')
  assert.deepEqual(
    fake.asked('usages').map(({ headers }) => headers.authorization),
    ['Bearer access-token-1']
  )

  fake.answer('usages', ({ headers }) => (headers.authorization === 'Bearer access-token-1' ? { status: 401 } : { body: {} }))
  const answers = await Promise.all([one, two, one, two].map(({ api }) => api('GET', '/oauth/usage')))
  assert.deepEqual(
    answers.map(({ data }) => data.kind),
    ['ok', 'ok', 'ok', 'ok']
  )
  assert.equal(fake.asked('refresh').length, 1)

  assert.deepEqual((await two.api('POST', '/oauth/logout', {})).data, { logged_out: true, provider: MANAGED })
  assert.deepEqual((await one.api('GET', '/oauth/usage')).data, { kind: 'error', message: 'not logged in' })
  assert.deepEqual((await one.api('GET', '/auth')).data, { ready: false, providers_count: 0, default_model: null, managed_provider: null })
})

test('two servers on one home: a login that one finishes cancels the one that is pending on the other', async t => {
  withEnvironment(t, { SVC_CODE_OAUTH_HOST: undefined, SVC_CODE_API_BASE_URL: undefined, SVC_CODE_OAUTH_CLIENT_ID: undefined })
  const fake = await fakeOauth(t, {
    poll: ({ form }) => (form.device_code === 'device-code-2' ? granted() : refused('authorization_pending'))
  })
  const home = await homeFor(fake)
  const [one, two] = [await process(t, home), await process(t, home)]

  await one.api('POST', '/oauth/login', {})
  await two.api('POST', '/oauth/login', {})

  assert.equal((await two.settled()).status, 'authenticated')
  assert.equal((await one.settled()).status, 'cancelled')
})
