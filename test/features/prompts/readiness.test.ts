/** What keeps a prompt from being accepted: told by its answer, over HTTP, with nothing left behind. */
import assert from 'node:assert/strict'
import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import agent from '../../../features/agent/pack.ts'
import { Config } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import history from '../../../features/history/pack.ts'
import llm from '../../../features/llm/pack.ts'
import chat from '../../../features/llm-chat/pack.ts'
import messages from '../../../features/messages/pack.ts'
import { logout } from '../../../features/oauth/index.ts'
import oauth from '../../../features/oauth/pack.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import prompts from '../../../features/prompts/pack.ts'
import { deleteProvider } from '../../../features/providers/index.ts'
import providers from '../../../features/providers/pack.ts'
import { createSession, updateProfile } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { freshDir } from '../../helpers/temp.ts'

const managed = 'managed:svc-code'
const far = 'https://models.invalid/v1'
const model = (provider: string, more: object = {}) => ({ provider, model: 'm', max_context_size: 64_000, ...more })

/** `byHand`: written into the file behind everything else, as nobody checks it. */
async function start(t: TestContext, file: Readonly<Record<string, unknown>> = {}, byHand = '') {
  let settings: Config | undefined
  const reader = definePack({
    name: 'reader',
    needs: { config: Config },
    setup(_, services) {
      settings = services.config
    }
  })
  const home = await freshDir()
  const kernel = await startTestKernel(t, {
    home,
    packs: [config, workspaces, sessions, history, llm, chat, oauth, agent, prompts, messages, providers, reader]
  })
  assert.ok(settings)
  const change = settings.patch.bind(settings)
  await change(file)
  if (byHand !== '') await appendFile(join(home, 'config.toml'), `\n${byHand}\n`)
  await settings.reload()
  const cwd = join(home, 'project')
  await mkdir(cwd)
  const newSession = async () => (await kernel.call(createSession, { body: { metadata: { cwd } } })).data.id
  const params = { session_id: await newSession() }
  const submit = (more: { readonly model?: string } = {}, to = params) =>
    kernel.call(submitPrompt, { params: to, body: { content: [{ type: 'text', text: 'hello' }], ...more } })
  /** Submits a prompt that is refused, and sees to it that nothing was done. */
  const refusal = async (more: { readonly model?: string } = {}, to = params) => {
    const before = await everything(home)
    const seen = kernel.events.length
    const { code, details, data } = await submit(more, to)
    assert.deepEqual(kernel.events.slice(seen), [])
    assert.deepEqual(await everything(home), before)
    assert.equal(data, null)
    return { code, details }
  }
  return { ...kernel, change, newSession, params, submit, refusal }
}

/** Every file of the sessions and the journals, with its content. */
async function everything(home: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.name.startsWith('state.json') || path.includes('/.lease-')) continue // saved a little later than what it follows from; a file as long as it is used
    found[path] = entry.isFile() ? await readFile(path, 'utf8') : ''
  }
  return found
}

/** The tokens of a login. */
async function store(home: string, tokens: { readonly access_token: string; readonly refresh_token: string; readonly expires_at: number }) {
  await mkdir(join(home, 'credentials'), { recursive: true })
  const credential = { scope: '', token_type: 'Bearer', expires_in: 3600, ...tokens }
  await writeFile(join(home, 'credentials', 'svc-code.json'), JSON.stringify(credential))
}

test('without a provider the answer is 40110, with and without a model', async t => {
  const { refusal } = await start(t)

  assert.deepEqual(await refusal(), { code: 40110, details: undefined })
  assert.deepEqual(await refusal({ model: 'p/m' }), { code: 40110, details: undefined })
})

test('a model that cannot be resolved answers 40113 and says which', async t => {
  const file = {
    providers: { p: { base_url: far, api_key: 'k' }, bare: { api_key: 'k' } },
    models: {
      'p/m': model('p'),
      orphan: model('gone'),
      bare: model('bare'),
      odd: model('odd'),
      pigeon: model('p', { protocol: 'carrier_pigeon' })
    }
  }
  const { refusal, change } = await start(t, file, '[providers.odd]\nbase_url = "ftp://x"\napi_key = "k"')
  const unresolved = (details?: object) => ({ code: 40113, details })

  assert.deepEqual(await refusal(), unresolved())
  assert.deepEqual(await refusal({ model: '' }), unresolved())
  assert.deepEqual(await refusal({ model: 'nobody' }), unresolved({ model_id: 'nobody' }))
  assert.deepEqual(await refusal({ model: '__proto__' }), unresolved({ model_id: '__proto__' }))
  assert.deepEqual(await refusal({ model: 'orphan' }), unresolved({ model_id: 'orphan', provider_id: 'gone' }))
  for (const alias of ['bare', 'odd']) {
    assert.deepEqual(await refusal({ model: alias }), unresolved({ model_id: alias, provider_id: alias }))
  }
  assert.deepEqual(await refusal({ model: 'pigeon' }), unresolved({ model_id: 'pigeon', provider_id: 'p' }))
  await change({ default_model: 'vanished' })
  assert.deepEqual(await refusal(), unresolved({ model_id: 'vanished' }))
})

test('a provider without a credential answers 40111, also for a model of its own that lacks one', async t => {
  const file = {
    providers: { p: { base_url: far }, q: { base_url: far, api_key: 'k' } },
    models: { 'p/m': model('p'), 'q/m': model('q', { oauth: { storage: 'file', key: 'own' } }) },
    default_model: 'p/m'
  }
  const { refusal } = await start(t, file)

  assert.deepEqual(await refusal(), { code: 40111, details: { provider_id: 'p' } })
  assert.deepEqual(await refusal({ model: 'q/m' }), { code: 40111, details: { provider_id: 'q' } })
})

test('a model that the session is bound to is told when it has gone since', async t => {
  const upstream = await fakeUpstream(t, [[{ text: 'hello' }]])
  const file = {
    providers: { p: { base_url: upstream.url, api_key: 'k' }, q: { base_url: far, api_key: 'k' } },
    models: { 'p/m': model('p') }
  }
  const { refusal, change, submit, waitFor, call, newSession, params } = await start(t, file)
  assert.equal((await submit({ model: 'p/m' })).code, 0)
  await waitFor(({ type }) => type === 'prompt.completed')
  const second = { session_id: await newSession() }
  await call(updateProfile, { params: second, body: { agent_config: { model: 'p/m' } } })

  await change({ providers: { p: { base_url: far, api_key: '' } } })
  for (const to of [params, second]) assert.deepEqual(await refusal({}, to), { code: 40111, details: { provider_id: 'p' } })
  await call(deleteProvider, { params: { provider_id: 'p' } })
  for (const to of [params, second]) assert.deepEqual(await refusal({}, to), { code: 40113, details: { model_id: 'p/m' } })
  await change({ models: { 'p/m': model('p') } })
  assert.deepEqual(await refusal(), { code: 40113, details: { model_id: 'p/m', provider_id: 'p' } })
})

test('a login that is over answers 40111, one that was refused 40112, and after a logout there is no provider', async t => {
  const file = {
    providers: { [managed]: { type: 'svc', base_url: far, oauth: { storage: 'file', key: 'svc-code' } } },
    models: { 'svc-code/m': model(managed) },
    default_model: 'svc-code/m'
  }
  const { refusal, home, call } = await start(t, file)
  const details = { provider_id: managed }

  assert.deepEqual(await refusal(), { code: 40111, details })
  await store(home, { access_token: 'over', refresh_token: '', expires_at: 1 })
  assert.deepEqual(await refusal(), { code: 40111, details })
  await store(home, { access_token: '', refresh_token: '', expires_at: 0 })
  assert.deepEqual(await refusal(), { code: 40112, details })
  assert.deepEqual(await refusal({ model: 'svc-code/m' }), { code: 40112, details })
  await call(logout, { body: {} })
  assert.deepEqual(await refusal(), { code: 40110, details: undefined })
})
