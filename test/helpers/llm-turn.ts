/** Conversations through the whole engine with a real adapter and a scripted upstream. */
import { mkdir, writeFile } from 'node:fs/promises'
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
import { fakeUpstream, type Script } from './fake-upstream.ts'
import { freshDir } from './temp.ts'
import type { UpstreamWire } from './upstream-wire.ts'

export interface TurnSetup {
  readonly protocol: string
  readonly pack: Pack
  readonly wire: UpstreamWire
  /** Upstream name of the model; default `m`. */
  readonly model?: string
  /** More fields of the provider, as TOML lines. */
  readonly provider?: string
  /** More fields of the model, as TOML lines. */
  readonly record?: string
}

export interface ConversationSetup extends TurnSetup {
  readonly script: Script
  /** Packs beside the ones that a conversation needs. */
  readonly packs?: readonly Pack[]
  /** More top-level TOML, before the tables. */
  readonly toml?: string
}

/** A picture in a prompt. */
export interface Image {
  readonly type: 'image'
  readonly source: { readonly kind: 'base64'; readonly media_type: string; readonly data: string }
}

/** A session on a fresh home; `start` starts a server on it (call it once to begin, and again after a stop), `ask` submits a prompt to one. */
export async function conversation(t: TestContextLike, setup: ConversationSetup) {
  const { protocol, pack, wire, model = 'm', provider = '', record = '', script, packs = [], toml = '' } = setup
  const upstream = await fakeUpstream(t, script, { wire })
  const home = await freshDir()
  const cwd = join(home, 'project')
  await mkdir(cwd)
  await writeFile(
    join(home, 'config.toml'),
    `default_model = "m"
${toml}
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
capabilities = ["thinking", "tool_use", "image_in"]
${record}
`
  )
  const all = [
    config,
    workspaces,
    sessions,
    history,
    llm,
    pack,
    echoRunner((_, { x }) => `echo of ${x}`),
    agent,
    prompts,
    messages,
    ...packs
  ]
  const start = () => startTestKernel(t, { home, packs: all, config: { agent: { retry_base_ms: 1 } } })
  type Kernel = Awaited<ReturnType<typeof start>>
  const open = async (kernel: Kernel): Promise<string> => (await kernel.call(createSession, { body: { metadata: { cwd } } })).data.id
  const submit = async (kernel: Kernel, session_id: string, text: string, media: readonly Image[] = []) => {
    const content = [{ type: 'text' as const, text }, ...media]
    const { code, msg } = await kernel.call(submitPrompt, { params: { session_id }, body: { content } })
    if (code !== 0) throw new Error(`prompt refused: ${code} ${msg}`)
  }
  /** Resolves when the prompt has settled. Prompts of one kernel come one after the other. */
  const ask = async (kernel: Kernel, session_id: string, text: string, media?: readonly Image[]) => {
    const before = kernel.events.filter(isSettled).length
    await submit(kernel, session_id, text, media)
    let seen = 0
    await kernel.waitFor(event => isSettled(event) && ++seen > before)
  }
  return { upstream, home, start, open, submit, ask }
}

const isSettled = ({ type }: { readonly type: string }) => type === 'prompt.completed' || type === 'prompt.aborted'

/**
 * A tool turn, a restart of the server, another prompt. Plays it and returns what the upstream was sent: request 0 asks, 1 carries the
 * results of two parallel calls, 2 comes after the restart. Every request gets thinking; the first also two calls of `Echo`.
 */
export async function playConversation(t: TestContextLike, setup: TurnSetup) {
  const calls = { tools: [1, 2].map(x => ({ name: 'Echo', args: { x }, id: `call_${x}` })) }
  const script = [
    [{ thinking: 'let me see' }, { text: 'Looking. ' }, calls],
    [{ thinking: 'I know' }, { text: 'It says hello.' }]
  ]
  const { upstream, start, open, ask } = await conversation(t, { ...setup, script })
  const first = await start()
  const session_id = await open(first)
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
