/** Compaction, undo and fork of a server that is killed at any moment: each happened wholly or not at all, and is told so once. */
import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { RestClient } from '../../kernel/testing.ts'
import { serve } from '../helpers/cli.ts'
import { journal } from '../helpers/crash-judge.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { modelConfig } from '../helpers/model-config.ts'
import { freshDir } from '../helpers/temp.ts'

const kills = Number(process.env.SVC_CODE_TEST_KILLS ?? 4)
const seed = Number(process.env.SVC_CODE_TEST_SEED ?? 7)

/** What was acknowledged. */
interface Ledger {
  session: string
  /** Prompts that were answered. */
  readonly prompts: Set<string>
  readonly undone: Set<string>
  /** Forks, with the prompts that they must have. */
  readonly forks: Map<string, readonly string[]>
  /** Forks that were asked for and never answered. */
  hoped: number
}

test('kill -9 in the middle of compactions, undos and forks: every one is whole or never was', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  const place = join(dir, 'place')
  await mkdir(home, { mode: 0o700 })
  await mkdir(place)
  const upstream = await fakeUpstream(t, body => {
    const messages = JSON.stringify(body.messages)
    const summary = JSON.stringify((body.messages as unknown[]).at(-1)).includes('replaced by a note')
    const usage = { input: Math.ceil(messages.length / 4), output: 5 }
    return [{ text: summary ? 'the summary' : 'an answer in pieces', chunks: 4, every_ms: 8 }, { usage }]
  })
  await writeFile(join(home, 'config.toml'), modelConfig(upstream.url, { key: 'k', model: 'm', max_context_size: 1500 }))
  const ledger: Ledger = { session: '', prompts: new Set(), undone: new Set(), forks: new Map(), hoped: 0 }
  const random = randomSource(seed)
  for (let round = 0; round <= kills; round++) {
    const server = await serve(t, home, '--port', '0')
    const rest = new RestClient(server.url, server.token)
    t.after(() => rest.close())
    const call = caller(rest)
    if (round === 0) ledger.session = (await call('POST', '/sessions', { metadata: { cwd: place } })).data.id
    else
      assert.deepEqual(
        await complaints(call, ledger, () => journal(server.url, server.token, ledger.session), home),
        [],
        `after kill ${round}`
      )
    if (round === kills) break
    const work = busy(call, ledger, random).catch(() => undefined) // the server dies
    await new Promise(resolve => setTimeout(resolve, 200 + random() * 700))
    server.child.kill('SIGKILL')
    await Promise.all([work, server.ended])
    rest.close()
  }
})

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Call = (method: string, path: string, body?: unknown) => Promise<{ readonly code: number; readonly data: any }>
const caller =
  (rest: RestClient): Call =>
  async (method, path, body) =>
    await rest.json(method, `/api/v1${path}`, body)

async function busy(call: Call, ledger: Ledger, random: () => number): Promise<void> {
  const path = `/sessions/${ledger.session}`
  for (let n = 0; ; n++) {
    const prompt = await call('POST', `${path}/prompts`, { content: [{ type: 'text', text: `prompt ${n} ${'x'.repeat(200)}` }] })
    if (prompt.code === 0) ledger.prompts.add(prompt.data.prompt_id)
    const wish = random()
    for (let tries = 0; tries < 200; tries++) {
      const done = wish < 0.3 ? await compact(call, path) : wish < 0.6 ? await undo(call, path, ledger) : await fork(call, path, ledger)
      if (done) break
    }
  }
}

const compact = async (call: Call, path: string) => (await call('POST', `${path}:compact`, {})).code === 0

async function undo(call: Call, path: string, ledger: Ledger): Promise<boolean> {
  const before = await promptsOf(call, path)
  const { code, data } = await call('POST', `${path}:undo`, { page_size: 100 })
  if (code !== 0) return code === 40911
  const left = idsIn(data.messages.items)
  for (const id of before) if (!left.includes(id)) ledger.undone.add(id)
  return true
}

async function fork(call: Call, path: string, ledger: Ledger): Promise<boolean> {
  const sure = (await promptsOf(call, path)).filter(id => ledger.prompts.has(id))
  ledger.hoped++
  const { code, data } = await call('POST', `${path}:fork`, {})
  ledger.hoped--
  if (code === 0) ledger.forks.set(data.id, sure)
  return code === 0
}

interface Listed {
  readonly prompt_id?: string
}
const idsIn = (items: readonly Listed[]) => items.flatMap(({ prompt_id }) => prompt_id ?? [])
const promptsOf = async (call: Call, path: string) => idsIn((await call('GET', `${path}/messages?page_size=100`)).data.items)

async function complaints(call: Call, ledger: Ledger, events: () => ReturnType<typeof journal>, home: string): Promise<string[]> {
  const found: string[] = []
  // Prompts that waited run now, and may compact.
  while ((await call('GET', `/sessions/${ledger.session}/status`)).data.busy) await new Promise(resolve => setTimeout(resolve, 20))
  const { data } = await call('GET', '/sessions?page_size=100')
  const listed = (data.items as { id: string }[]).map(({ id }) => id)
  for (const id of [ledger.session, ...ledger.forks.keys()]) if (!listed.includes(id)) found.push(`${id} is not listed`)
  if (listed.length > 1 + ledger.forks.size + ledger.hoped) found.push(`there are ${listed.length} sessions`)
  for (const id of listed) {
    const { code } = await call('GET', `/sessions/${id}/snapshot`)
    if (code !== 0) found.push(`${id} does not open: ${code}`)
  }
  for (const [id, prompts] of ledger.forks) {
    const has = await promptsOf(call, `/sessions/${id}`)
    if (prompts.some(prompt => !has.includes(prompt))) found.push(`the fork ${id} lacks prompts`)
  }
  const has = await promptsOf(call, `/sessions/${ledger.session}`)
  for (const id of ledger.undone) if (has.includes(id)) found.push(`${id} was taken back and is there`)
  const told = (await events()).map(({ type }) => type).filter(type => /^compaction\.(started|completed|cancelled)/.test(type))
  const open = told.filter((type, at) => (type === 'compaction.started') !== (at % 2 === 0))
  if (open.length > 0 || told.length % 2 > 0) found.push(`compactions: ${told.join()}`)
  const root = join(home, 'sessions')
  for (const workspace of (await readdir(root)).filter(name => !name.startsWith('.'))) {
    const left = (await readdir(join(root, workspace))).filter(name => name.startsWith('.new-'))
    if (left.length > 0) found.push(`left behind: ${left.join()}`)
  }
  return found
}

/** mulberry32: the same numbers for the same seed. */
function randomSource(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
