/** Upstreams that repeat what they were sent: nothing of it reaches an event, an answer, a journal or a log. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type FakeUpstream, fakeUpstream } from '../helpers/fake-upstream.ts'
import { tomlFile } from '../helpers/secret-config.ts'
import { echoes, sentBy } from '../helpers/secret-echo.ts'
import { WatchedServer, Witness } from '../helpers/secret-witness.ts'
import { leakList, Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'
import { chatWire } from '../helpers/upstream-chat.ts'
import { genaiWire } from '../helpers/upstream-genai.ts'
import { messagesWire } from '../helpers/upstream-messages.ts'
import { responsesWire } from '../helpers/upstream-responses.ts'
import type { UpstreamWire } from '../helpers/upstream-wire.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

const wires: Readonly<Record<string, UpstreamWire>> = {
  svc: chatWire,
  compat_chat: chatWire,
  compat_responses: responsesWire,
  compat_messages: messagesWire,
  compat_genai: genaiWire,
  compat_cloud: genaiWire
}

async function place() {
  const dir = await freshDir()
  const [home, cwd] = [join(dir, 'home'), join(dir, 'place')]
  await mkdir(home)
  await mkdir(cwd)
  const secrets = new Secrets()
  return { dir, home, cwd, secrets, witness: new Witness(home, secrets) }
}

/** The address with a password and a key in it. */
function withSecrets(url: string, secrets: Secrets, name: string): string {
  const address = new URL(url)
  address.username = 'me'
  address.password = secrets.seed(`password of ${name}`)
  address.searchParams.set('api_key', secrets.seed(`key in the URL of ${name}`))
  return address.href
}

test('a turn through each adapter does not show what its upstream repeats', async t => {
  const { dir, home, cwd, secrets, witness } = await place()
  const upstreams = new Map<string, FakeUpstream>()
  const config: Json = {
    loop_control: { max_attempts_per_step: 2 },
    packs: { config: { agent: { retry_base_ms: 0 } } },
    providers: {},
    models: {}
  }
  for (const [type, wire] of Object.entries(wires)) {
    const answer = (body: object, _: number, request: Parameters<typeof sentBy>[0]) => {
      const said = JSON.stringify(body)
      const [wish] = Object.keys(echoes).sort((a, b) => said.lastIndexOf(`say ${b}"`) - said.lastIndexOf(`say ${a}"`))
      return echoes[wish!]!(sentBy(request))
    }
    const upstream = await fakeUpstream(t, answer, { wire })
    upstreams.set(type, upstream)
    const key = secrets.seed(`key of ${type}`, 'awkward')
    config.providers[type] = {
      type,
      base_url: withSecrets(upstream.url, secrets, type),
      custom_headers: { 'X-Team': `team ${secrets.seed(`header of ${type}`)}` },
      ...(type === 'compat_cloud' ? { env: { C_ACCESS_TOKEN: key, C_PROJECT: 'p', C_LOCATION: 'l' } } : { api_key: key })
    }
    config.models[type] = { provider: type, model: 'm', max_context_size: 64_000 }
  }
  await writeFile(join(home, 'config.toml'), tomlFile(config))
  const extra = `X-Team-Extra: ${secrets.seed('header of the environment')}`
  const server = await WatchedServer.start(t, witness, { HOME: dir, SVC_CODE_CUSTOM_HEADERS: extra })
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)

  await Promise.all(
    [...upstreams.keys()].map(async type => {
      const session_id = (await api('POST', '/sessions', { metadata: { cwd } })).data.id as string
      await socket.request('subscribe', { session_ids: [session_id] })
      for (const name of Object.keys(echoes)) {
        const content = [{ type: 'text', text: `say ${name}` }]
        const { code, msg, data } = await api('POST', `/sessions/${session_id}/prompts`, { content, model: type })
        assert.equal(code, 0, msg)
        await socket.next(frame => /^prompt\.(completed|aborted)$/.test(frame.type) && frame.payload.promptId === data.prompt_id)
      }
      for (const part of ['messages', 'snapshot', 'status', 'prompts']) await api('GET', `/sessions/${session_id}/${part}`)
    })
  )
  for (const [type, { requests }] of upstreams) assert.ok(requests.length >= Object.keys(echoes).length, type)
  const failed = socket.frames.filter(frame => frame.type === 'turn.ended' && frame.payload.reason === 'failed')
  assert.ok(failed.length > 80, `${failed.length} turns failed`)
  await server.stop()
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
})
