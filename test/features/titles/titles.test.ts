import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../../features/default-packs.ts'
import { Histories, type History } from '../../../features/history/index.ts'
import { LlmLogins } from '../../../features/llm/index.ts'
import { createSession, Sessions, updateProfile } from '../../../features/sessions/index.ts'
import { generateTitle, type TitleSource } from '../../../features/titles/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

interface Asked {
  readonly path: string
  readonly token: string
  readonly chat: string
  readonly device: unknown
}

interface Answer {
  readonly status: number
  readonly body: string
}

/** A server with a managed login, and a provider that answers what the test says; `hang` never does. */
async function scene(t: Parameters<typeof startTestKernel>[0], config = 'auto_session_title = true', timeout_ms = 5000) {
  const asked: Asked[] = []
  const script: (Answer | 'hang' | (() => Promise<Answer>))[] = []
  const provider = createServer(async (request, response) => {
    const { method, params } = JSON.parse(await text(request)) as { method: string; params: { chat_content: string } }
    asked.push({
      path: `${request.url} ${method}`,
      token: String(request.headers.authorization),
      chat: params.chat_content,
      device: request.headers['x-svc-device-id']
    })
    const scripted = script.shift() ?? { status: 200, body: JSON.stringify({ title: `Title ${asked.length}` }) }
    const next = typeof scripted === 'function' ? await scripted() : scripted
    if (next !== 'hang') response.writeHead(next.status, { 'content-type': 'application/json' }).end(next.body)
  })
  await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    provider.closeAllConnections()
    provider.close()
  })
  const home = await freshDir()
  const base = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/api`
  await writeFile(
    join(home, 'config.toml'),
    `[experimental]\n${config}\n[providers."managed:svc-code"]\ntype = "svc"\nbase_url = "${base}"\n`
  )
  const found: { sessions?: Sessions; histories?: Histories } = {}
  const probe = definePack({
    name: 'probe',
    needs: { sessions: Sessions, histories: Histories },
    setup(ctx, services) {
      Object.assign(found, services)
      ctx.contribute(LlmLogins, {
        status: () => 'authenticated',
        accessToken: async (_id, { force, refused }) => (force ? `renewed-${refused}` : 'first')
      })
    }
  })
  const server = await startTestKernel(t, {
    packs: [...(await loadDefaultPacks(['oauth'])), probe],
    home,
    config: { titles: { timeout_ms } }
  })
  const { data } = await server.call(createSession, { body: { metadata: { cwd: await freshDir() } } })
  const session = await (found.sessions as Sessions).load(data.id)
  const generate = (body?: { force?: boolean; source?: TitleSource }) =>
    server.call(generateTitle, { params: { session_id: data.id }, ...(body ? { body } : {}) } as never)
  const history = async () => (found.histories as Histories).of(await session.main())
  return { ...server, asked, script, session, generate, history, id: data.id }
}

async function talk(history: History, turn_id: number, prompt: string, reply: string): Promise<void> {
  const prompt_id = `msg_${turn_id}`
  const content = [{ type: 'text', text: prompt }]
  const origin = { kind: 'user' }
  const number = turn_id * 2
  await history.append(
    { type: 'prompt.accepted', prompt_id, content, origin, starts: true },
    { type: 'turn.started', turn_id, origin, prompt_id },
    { type: 'message', id: prompt_id, role: 'user', origin, prompt_id, turn_id, number },
    { type: 'step.begin', turn_id, step: 1, step_id: `s${turn_id}` },
    { type: 'step.message', turn_id, step: 1, content: [{ type: 'text', text: reply }], number: number + 1 },
    { type: 'turn.ended', turn_id, reason: 'completed', duration_ms: 1, steps: 1 },
    { type: 'prompt.settled', prompt_ids: [prompt_id], status: 'completed', turn_id }
  )
}

test('the managed provider is told which host asks for a title', async t => {
  const { generate, history, asked } = await scene(t)
  await talk(await history(), 0, 'a prompt', 'a reply')

  await generate()

  assert.match(String(asked[0]?.device), /^[0-9a-f-]{36}$/)
})

test('a title is asked for with what was said, applied and told; a 401 renews the login once', async t => {
  const { generate, history, asked, script, session, events } = await scene(t)
  const secret = 'sk-abcdefghijklmnopqrstuvwxyz'
  for (const [at, prompt] of [`look at ${secret}`, 'word '.repeat(200), 'third', 'fourth'].entries())
    await talk(await history(), at, prompt, `reply ${at}`)
  script.push({ status: 401, body: '{}' })

  const { data } = await generate()

  assert.deepEqual(data, { title: 'Title 2' })
  assert.deepEqual(
    asked.map(({ path, token }) => [path, token]),
    [
      ['/api/tools chat_title', 'Bearer first'],
      ['/api/tools chat_title', 'Bearer renewed-first']
    ]
  )
  const chat = asked[1]?.chat ?? ''
  assert.ok(!chat.includes(secret) && !chat.includes('fourth'))
  assert.deepEqual(
    chat.split('\n').map(line => line.length),
    [chat.split('\n')[0]?.length, 406, 11]
  )
  assert.deepEqual([session.state.title, session.state.title_kind], ['Title 2', 'generated'])
  assert.deepEqual(
    events
      .filter(({ type }) => type === 'session.meta.updated')
      .map(({ payload }) => payload)
      .at(-1),
    {
      title: 'Title 2',
      patch: { title: 'Title 2', isCustomTitle: false }
    }
  )
})

test('the other sources: the first turn with its reply, and all turns with the middle left out', async t => {
  const { generate, history, asked } = await scene(t)
  const none = await generate({ source: 'first_turn' })
  assert.equal(none.code, 40923)
  // What a hook blocked reaches no model, this one neither.
  const content = [{ type: 'text', text: 'a word that must not go out' }]
  const blocked = { prompt_id: 'blocked', origin: { kind: 'user' } }
  await (await history()).append(
    { type: 'prompt.accepted', ...blocked, content },
    { type: 'message', role: 'user', id: 'blocked', ...blocked, blocked: true },
    { type: 'prompt.settled', prompt_ids: ['blocked'], status: 'blocked' }
  )
  for (const source of ['user_prompts', 'first_turn', 'digest'] as const) assert.equal((await generate({ source })).code, 40923)
  await talk(await history(), 0, 'first question', 'c'.repeat(600))
  await generate({ source: 'first_turn', force: true })
  assert.equal(asked[0]?.chat, `user: first question\nassistant: [redacted]`)
  for (let n = 1; n < 30; n++) await talk(await history(), n, `question ${n} ${'word '.repeat(60)}`, `answer ${n} ${'word '.repeat(60)}`)
  await generate({ source: 'digest', force: true })
  const digest = asked[1]?.chat ?? ''
  assert.ok(digest.length <= 3000 && digest.includes('first question') && digest.includes('answer 29') && digest.includes('\n...\n'))
})

test('what goes out is cut between characters', async t => {
  const { generate, history, asked } = await scene(t)
  for (let n = 0; n < 30; n++)
    await talk(await history(), n, `${'x'.repeat(n % 2)}${'\u{1f600}'.repeat(400)}`, `x${'\u{1f600} '.repeat(400)}`)
  for (const source of ['user_prompts', 'first_turn', 'digest'] as const) await generate({ source, force: true })
  const halves = asked.flatMap(({ chat }) => chat.match(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g) ?? [])
  assert.deepEqual([asked.length, halves], [3, []])
})

test('calls that meet share one request; a title that is there stays, unless it is forced away', async t => {
  const { generate, history, asked, call, id } = await scene(t)
  await talk(await history(), 0, 'hello', 'hi')
  const both = await Promise.all([generate(), generate()])
  assert.deepEqual(
    both.map(({ data }) => data),
    [{ title: 'Title 1' }, { title: 'Title 1' }]
  )
  assert.equal((await generate()).code, 40923)
  assert.equal((await generate({ force: true })).data.title, 'Title 2')
  await call(updateProfile, { params: { session_id: id }, body: { title: 'Mine' } })
  assert.equal((await generate()).code, 40923)
  assert.equal(asked.length, 2)
})

test('what the user calls the session while a title is made stays', async t => {
  const { generate, history, script, session, call, id } = await scene(t)
  await talk(await history(), 0, 'hello', 'hi')
  script.push(async () => {
    await call(updateProfile, { params: { session_id: id }, body: { title: 'Mine' } })
    return { status: 200, body: '{"title":"Made"}' }
  })
  assert.equal((await generate()).code, 40923)
  assert.equal(session.state.title, 'Mine')
})

test('nothing of a turn that was taken back goes out', async t => {
  const { generate, history, asked } = await scene(t)
  await talk(await history(), 0, 'that stays', 'hi')
  await talk(await history(), 1, 'that was taken back', 'hi')
  await (await history()).append({ type: 'context.undone', from: 1, context_tokens: 0 })
  await generate()
  assert.equal(asked[0]?.chat, 'user: that stays')
})

test('every failure answers 40923 and changes nothing: a bad status, no title, no JSON, a provider that hangs', async t => {
  const { generate, history, script, session } = await scene(t, undefined, 300)
  await talk(await history(), 0, 'hello', 'hi')
  const before = session.state
  script.push({ status: 500, body: '' }, { status: 200, body: '{"title":" "}' }, { status: 200, body: 'x' }, 'hang')
  for (const why of [/HTTP 500/, /without a title/, /without a title/, /not answer in time/]) {
    const { code, msg } = await generate()
    assert.deepEqual([code, why.test(msg)], [40923, true], msg)
  }
  assert.equal(session.state, before)
})

test('without the flag, without a prompt, with a bad source or for nobody there is no title', async t => {
  const { generate, history, asked, call } = await scene(t, 'wait_for = true')
  await talk(await history(), 0, 'hello', 'hi')
  assert.equal((await generate()).code, 40923)
  assert.equal((await generate({ source: 'nonsense' as TitleSource })).code, 40001)
  assert.equal((await call(generateTitle, { params: { session_id: 'session_x' } } as never)).code, 40401)
  const on = await scene(t)
  assert.equal((await on.generate()).code, 40923)
  assert.equal(asked.length + on.asked.length, 0)
})
