/** Random sessions: what a client folds from operations, what a loaded session answers, and what is on disk are one transcript. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { HistoryRecord } from '../../../features/history/index.ts'
import { abortSession, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { createSession, readSession } from '../../../features/sessions/index.ts'
import { indexState, TranscriptIndex } from '../../../features/transcript/index-state.ts'
import transcript from '../../../features/transcript/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import { latch } from '../../helpers/latch.ts'
import { randomSource } from '../../helpers/random.ts'
import { failure, type Reply, scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { echoRunner, type Started, startAgent } from '../agent/start.ts'
import { common, pageOf, TranscriptClient } from './client.ts'

const schedules = Number(process.env.SVC_CODE_TEST_TRANSCRIPTS ?? 15)
const seed = Number(process.env.SVC_CODE_TEST_SEED ?? 1)

test(`${schedules} random sessions have one transcript, live, by operations and on disk (seed ${seed})`, async t => {
  const random = randomSource(seed)
  const chance = (share: number) => random() < share
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  let calls = 0
  let gate = latch()
  const words = () => pick(['one', 'two words', 'a longer answer of several words', ''])
  const replies: (() => Reply)[] = [
    () => text(`said ${words()}`),
    () => [{ type: 'thinking', text: 'Hm. ' }, { type: 'thinking', text: 'Well.' }, ...text(words())],
    () => [{ type: 'text', text: 'look ' }, { type: 'thinking', text: 'again' }, ...text('then')],
    () => [
      { type: 'text', text: 'calling ' },
      ...toolCalls({ id: `c${calls++}`, name: 'Echo', args: { text: 'x'.repeat(random() * 500) } })
    ],
    () => toolCalls({ id: `c${calls++}`, name: 'Echo' }, { id: `c${calls++}`, name: 'Echo' }),
    () => [{ type: 'text', text: 'lost text ' }, ...failure()],
    () => failure(),
    () => [{ type: 'tool_call', id: `c${calls++}`, name: 'Echo' }, { type: 'tool_arguments', id: `c${calls}`, text: '{"a' }, ...failure()],
    () => [{ type: 'text', text: 'broken' }, ...failure({ retryable: false, status: 400, message: 'bad' })],
    () => [
      { type: 'text', text: 'slow ' },
      { type: 'wait', until: gate.opened },
      { type: 'text', text: 'end' },
      { type: 'finish', reason: 'completed' }
    ]
  ]
  const slow = replies.at(-1) as () => Reply
  let next: (() => Reply) | undefined
  const answer = (): Reply => {
    const reply = next ?? pick(replies)
    next = undefined
    return reply()
  }
  const home = await freshDir()
  const server = await startAgent(t, scriptedLlm(answer), { packs: [transcript, undo, echoRunner()], home })
  const pages: { session_id: string; page: Awaited<ReturnType<typeof pageOf>> }[] = []

  for (let n = 0; n < schedules; n++) {
    const { id: session_id } = (await server.call(createSession, { body: { metadata: { cwd: server.cwd } } })).data
    const session: Started = { ...server, session_id }
    const params = { session_id }
    const submit = async (words: string) => {
      const { prompt_id } = await promptIn(session, words)
      const over = session.waitFor(({ type, payload }) => {
        const { promptId, promptIds } = payload as { promptId?: string; promptIds?: string[] }
        if (type === 'prompt.steered' && promptIds?.includes(prompt_id)) return true
        return (type === 'prompt.completed' || type === 'prompt.aborted') && promptId === prompt_id
      })
      return { prompt_id, over }
    }
    const steady = new TranscriptClient()
    const flighty = new TranscriptClient()
    const clients = [steady, flighty]
    if (chance(0.5)) await steady.connect(session)
    else {
      const first = await submit('before anybody looks')
      gate.open()
      await first.over
      await steady.connect(session)
    }
    await flighty.connect(session)
    for (let action = 0; action < 6; action++) {
      gate = latch()
      if (chance(0.4)) next = slow
      const isSlow = next === slow
      const { over } = await submit(`prompt ${action}`)
      if (chance(0.3)) {
        flighty.drop()
        if (chance(0.5)) await flighty.connect(session)
      }
      if (isSlow && chance(0.5)) {
        const other = await submit('another one')
        if (chance(0.5)) await session.call(steerPrompts, { params, body: { prompt_ids: [other.prompt_id] } })
      }
      if (chance(0.2)) await steady.settle(session)
      if (chance(0.2)) await session.call(abortSession, { params })
      gate.open()
      await over
      if (chance(0.15)) {
        await idle(session)
        await session.call(undoSession, { params, body: { count: 1 } })
      }
    }
    gate.open()
    await idle(session)
    flighty.drop()
    await flighty.connect(session)
    const page = await pageOf(session)
    for (const client of clients) {
      await client.settle(session)
      const view = client.view()
      assert.ok(view && view.items.length > 0)
      assert.deepEqual(common(view), common(page), `session ${n} by ${client === steady ? 'the steady' : 'the flighty'} client`)
      client.drop()
    }
    pages.push({ session_id, page })
  }
  await server.stop()

  const other = await startAgent(t, scriptedLlm(), { packs: [transcript, undo], home, session_id: server.session_id })
  for (const { session_id, page } of pages) {
    const { seq, ...live } = page
    assert.equal(typeof seq, 'number')
    assert.deepEqual(await pageOf({ ...other, session_id }), live)
  }
  // Wherever a checkpoint comes, what is read from it goes on as what was live.
  const journals = (await readdir(home, { recursive: true })).filter(name => name.endsWith('wire.jsonl'))
  assert.ok(journals.length >= schedules)
  for (const name of journals) {
    const lines = (await readFile(join(home, name), 'utf8')).trimEnd().split('\n')
    const records = lines.map((line): HistoryRecord => JSON.parse(line))
    assert.deepEqual(folded(records, true).entities.shown(), folded(records, false).entities.shown())
  }
})

/** The index of the records; `saved`: as if a checkpoint came behind each of them, and the process ended there. */
function folded(records: readonly HistoryRecord[], saved: boolean): TranscriptIndex {
  let index = indexState.initial()
  for (const [at, record] of records.entries()) {
    index.take(record, at)
    if (saved) index = TranscriptIndex.load(JSON.parse(JSON.stringify(index.save())))
  }
  return index
}

async function promptIn(server: Started, words: string): Promise<{ prompt_id: string }> {
  const { code, data } = await server.call(submitPrompt, {
    params: { session_id: server.session_id },
    body: { content: [{ type: 'text', text: words }] }
  })
  assert.equal(code, 0)
  return data
}

/** Resolves when the session does nothing. */
async function idle(server: Started): Promise<void> {
  const busy = async () => (await server.call(readSession, { params: { session_id: server.session_id } })).data.busy
  while (await busy()) await new Promise(resolve => setTimeout(resolve, 2))
}
