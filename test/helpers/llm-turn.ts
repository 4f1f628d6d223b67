/** A conversation through the whole engine with a real adapter: a tool turn, a restart of the server, another prompt. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import agent from '../../features/agent/pack.ts'
import config from '../../features/config/pack.ts'
import history from '../../features/history/pack.ts'
import llm from '../../features/llm/pack.ts'
import { listMessages } from '../../features/messages/index.ts'
import messages from '../../features/messages/pack.ts'
import { submitPrompt } from '../../features/prompts/index.ts'
import prompts from '../../features/prompts/pack.ts'
import { createSession } from '../../features/sessions/index.ts'
import sessions from '../../features/sessions/pack.ts'
import workspaces from '../../features/workspaces/pack.ts'
import type { Pack } from '../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../kernel/testing.ts'
import { echoRunner } from '../features/agent/start.ts'
import { fakeUpstream, type UpstreamWire } from './fake-upstream.ts'

export interface TurnSetup {
  readonly protocol: string
  readonly pack: Pack
  readonly wire: UpstreamWire
  /** Upstream name of the model; default `m`. */
  readonly model?: string
  /** More fields of the provider, as TOML lines. */
  readonly provider?: string
}

/**
 * Plays it and returns what the upstream was sent: request 0 asks, 1 carries the results of two parallel calls, 2 comes after the restart.
 * Every request gets thinking; the first also two calls of `Echo`.
 */
export async function playConversation(t: TestContextLike, { protocol, pack, wire, model = 'm', provider = '' }: TurnSetup) {
  const calls = { tools: [1, 2].map(x => ({ name: 'Echo', args: { x }, id: `call_${x}` })) }
  const script = [
    [{ thinking: 'let me see' }, { text: 'Looking. ' }, calls],
    [{ thinking: 'I know' }, { text: 'It says hello.' }]
  ]
  const upstream = await fakeUpstream(t, script, { wire })
  const home = await mkdtemp(join(tmpdir(), 'svc-code-home-'))
  t.after(() => rm(home, { recursive: true, force: true }))
  const cwd = join(home, 'project')
  await mkdir(cwd)
  await writeFile(
    join(home, 'config.toml'),
    `default_model = "m"
[thinking]
effort = "high"
[providers.p]
type = "${protocol}"
base_url = "${upstream.url}"
api_key = "secret-key"
${provider}
[models.m]
provider = "p"
model = "${model}"
max_context_size = 64000
capabilities = ["thinking", "tool_use"]
`
  )
  const start = () =>
    startTestKernel(t, {
      home,
      packs: [config, workspaces, sessions, history, llm, pack, echoRunner((_, { x }) => `echo of ${x}`), agent, prompts, messages]
    })
  const ask = async (kernel: Awaited<ReturnType<typeof start>>, session_id: string, text: string) => {
    const { code, msg } = await kernel.call(submitPrompt, { params: { session_id }, body: { content: [{ type: 'text', text }] } })
    if (code !== 0) throw new Error(`prompt refused: ${code} ${msg}`)
    await kernel.waitFor(event => event.type === 'prompt.completed')
  }
  const first = await start()
  const { id: session_id } = (await first.call(createSession, { body: { metadata: { cwd } } })).data
  await ask(first, session_id, 'what does it say?')
  const { items } = (await first.call(listMessages, { params: { session_id } })).data
  await first.stop()
  const second = await start()
  await ask(second, session_id, 'and now?')
  const sent = (n: number) => {
    const request = upstream.requests[n]
    if (!request) throw new Error(`the upstream got ${upstream.requests.length} requests`)
    return request.body
  }
  return { sent, items, events: [...first.events, ...second.events] }
}
