/** A home with a model behind it for tests that kill servers: the model answers by the last words it was told. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type FakeUpstream, fakeUpstream, type Step } from './fake-upstream.ts'
import { modelConfig } from './model-config.ts'
import { freshDir } from './temp.ts'

export interface Scene {
  readonly home: string
  /** An existing directory for workspaces. */
  readonly place: string
  readonly upstream: FakeUpstream
  /** What is wrong with requests: a tool call without exactly one result, a notification that stands there twice. */
  readonly refusals: string[]
}

export interface SceneOptions {
  /** What the model says; default: `talk` streams, `tools` (`sleep`: a long one) calls Bash twice at once and talks afterwards, `hang` waits
   * for a release in mid-stream. */
  readonly model?: (messages: readonly Said[]) => readonly Step[]
  /** Further lines of `config.toml`, before its first table. */
  readonly toml?: string
  /** Tables of `config.toml`. */
  readonly tables?: string
}

export async function crashScene(t: TestContext, { model = answer, toml = '', tables = '' }: SceneOptions = {}): Promise<Scene> {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const place = join(dir, 'place')
  await mkdir(home, { mode: 0o700 })
  await mkdir(place)
  const refusals: string[] = []
  const upstream = await fakeUpstream(t, body => {
    const messages = body.messages as readonly Said[]
    refusals.push(...unpaired(messages), ...repeated(messages))
    return model(messages)
  })
  const settings = modelConfig(upstream.url, {
    key: 'k',
    model: 'm',
    max_context_size: 1_000_000,
    more: 'capabilities = ["image_in"]'
  })
  await writeFile(join(home, 'config.toml'), `${toml}\n${settings}\n${tables}`)
  return { home, place, upstream, refusals }
}

export interface Said {
  readonly role: string
  readonly content?: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: readonly { readonly id: string }[]
}

function answer(messages: readonly Said[]): readonly Step[] {
  const last = messages.at(-1)
  if (last?.role === 'tool') return [{ text: 'The tools are done.', chunks: 3, every_ms: 1 }]
  const answered = messages.findLastIndex(message => message.role !== 'user')
  const told = JSON.stringify(messages.slice(answered + 1).map(message => message.content))
  // Prompts of turns that a crash ended without an answer stand there, too: the newest counts.
  const wish = [...told.matchAll(/\b(hang|tools|sleep|talk)\b/g)].at(-1)?.[1]
  if (wish === 'hang') return [{ text: 'Wait. ' }, { hang: true }, { text: 'Done.' }]
  if (wish === 'tools' || wish === 'sleep') {
    const calls = [wish === 'sleep' ? "trap '' TERM INT; sleep 30; sleep 30" : 'echo one; echo two', 'echo three']
    return [{ text: 'Looking.', chunks: 2 }, { tools: calls.map(command => ({ name: 'Bash', args: { command } })) }]
  }
  return [{ thinking: 'hm' }, { text: 'a fairly long answer in many pieces', chunks: 12, every_ms: 2 }]
}

function unpaired(messages: readonly Said[]): string[] {
  const problems: string[] = []
  for (const [at, message] of messages.entries()) {
    const wanted = (message.tool_calls ?? []).map(call => call.id)
    const given = messages.slice(at + 1, at + 1 + wanted.length).map(next => next.tool_call_id)
    if (wanted.join() !== given.join()) problems.push(`calls ${wanted.join()} got ${given.join()}`)
  }
  return problems
}

/** Notifications of tasks that the model is told a second time. */
function repeated(messages: readonly Said[]): string[] {
  const ids = messages.flatMap(({ role, content }) =>
    role === 'user' ? [...JSON.stringify(content).matchAll(/<notification id=\\"([^"\\]+)/g)].map(found => found[1]) : []
  )
  return ids.filter((id, at) => ids.indexOf(id) < at).map(id => `the notification ${id} is told again`)
}
