/** The snapshot of a session: what it holds at which moment, and what comes behind it. */
import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { PromptBlocks } from '../../../features/agent/index.ts'
import agents from '../../../features/agent/pack.ts'
import history from '../../../features/history/pack.ts'
import { Messages } from '../../../features/messages/index.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import prompts from '../../../features/prompts/pack.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import sessionViews from '../../../features/session-views/pack.ts'
import { createSession, readSession } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { AppError, defineEvent, definePack, PersistenceFailed, Type } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { echoRunner, historyOnDisk, startAgent } from '../agent/start.ts'

test('a snapshot between the acceptance of a prompt and its turn has the prompt, once', async t => {
  const preparing = latch()
  const slow = definePack({
    name: 'slow',
    setup: ctx =>
      ctx.contribute(PromptBlocks, {
        name: 'slow',
        order: 1,
        async render() {
          await preparing.opened
          return ''
        }
      })
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [slow] })
  const { prompt_id } = await agent.prompt('go')
  const users = async () => {
    const { data } = await agent.call(readSnapshot, { params: { session_id: agent.session_id } })
    return data.messages.items.filter(item => item.prompt_id !== undefined).map(({ id, content, metadata }) => ({ id, content, metadata }))
  }
  const expected = [{ id: prompt_id, content: [{ type: 'text', text: 'go' }], metadata: { origin: { kind: 'user' } } }]
  assert.deepEqual(await users(), expected)
  preparing.open()
  await agent.settled(1)
  assert.deepEqual(await users(), expected)
})

test('subscribing at the position of a snapshot replays exactly what came after it', async t => {
  const agent = await startAgent(t, scriptedLlm('one two'))
  await agent.prompt('go')
  await agent.settled(1)
  const { as_of_seq, epoch } = (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data
  const watcher = await agent.connect()
  await watcher.request('subscribe', { session_ids: [agent.session_id] })
  await agent.prompt('again')
  // Told to the sockets of then: what a later one gets is the replay alone.
  await watcher.next(frame => frame.type === 'prompt.completed' && (frame.seq ?? 0) > as_of_seq)
  const socket = await agent.connect()
  await socket.request('subscribe', { session_ids: [agent.session_id], cursors: { [agent.session_id]: { seq: as_of_seq, epoch } } })
  await socket.next('prompt.completed')
  // Events for everybody may reach the socket before it has subscribed; what is replayed begins at the position.
  const ours = socket.frames.filter(frame => frame.session_id === agent.session_id && frame.type !== 'ack')
  const replayed = ours.slice(ours.findIndex(frame => frame.seq === as_of_seq + 1))
  assert.deepEqual(
    replayed.map(frame => frame.seq),
    replayed.map((_frame, n) => as_of_seq + 1 + n)
  )
})

test('a result that is on its way to the disk is in the snapshot or comes behind it, not both', async t => {
  const asked = latch()
  const disk = latch()
  const history = historyOnDisk(async ([...records]) => {
    if (!records.some(record => record.type === 'tool.result')) return
    asked.open()
    await disk.opened
  })
  const llm = scriptedLlm(toolCalls({ name: 'Echo', args: {} }), 'done')
  const agent = await startAgent(t, llm, { history, packs: [echoRunner()] })
  const params = { session_id: agent.session_id }
  await agent.prompt('go')
  await asked.opened
  const taking = agent.call(readSnapshot, { params })
  for (let n = 0; n < 20; n++) await agent.call(readSession, { params }) // time enough for the snapshot to read its position
  disk.open()
  const { as_of_seq, epoch, messages } = (await taking).data
  await agent.settled(1)

  const socket = await agent.connect()
  await socket.request('subscribe', { session_ids: [agent.session_id], cursors: { [agent.session_id]: { seq: as_of_seq, epoch } } })
  const shown = messages.items.filter(item => item.role === 'tool').length
  const told = socket.frames.filter(frame => frame.type === 'tool.result').length
  assert.equal(shown + told, 1)
})

test('a snapshot whose messages cannot be read while its events are written is refused, and nothing of it fails where nobody listens', async t => {
  const escaped: unknown[] = []
  const hear = (error: unknown) => void escaped.push(error)
  process.on('unhandledRejection', hear)
  t.after(() => process.off('unhandledRejection', hear))
  const llm = scriptedLlm('answer')
  const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({}) })
  const failing = definePack({
    name: 'failing',
    provides: [Messages],
    setup(ctx) {
      const emit = ctx.event(noted)
      ctx.provide(Messages, {
        page: () => assert.fail('not asked for'),
        async newest(_history, session_id) {
          emit({}, { session_id })
          throw new AppError(PersistenceFailed)
        }
      })
    }
  })
  const { call } = await startTestKernel(t, { packs: [workspaces, sessions, history, llm.pack, agents, prompts, sessionViews, failing] })
  const params = { session_id: (await call(createSession, { body: { metadata: { cwd: await freshDir() } } })).data.id }
  await call(submitPrompt, { params, body: { content: [{ type: 'text', text: 'go' }] } })
  assert.equal((await call(readSnapshot, { params })).code, PersistenceFailed.code)
  assert.deepEqual(escaped, [])
})

test('who can only read a session of another server has what its events have told, also before it is saved', async t => {
  const home = await freshDir()
  const owner = await startAgent(t, scriptedLlm('answer'), { home })
  const reader = await startAgent(t, scriptedLlm('never asked'), { home, session_id: owner.session_id })
  await owner.prompt('go')
  await owner.settled(1)
  const params = { session_id: owner.session_id }
  const read = async ({ call }: typeof owner) => (await call(readSnapshot, { params })).data
  const [there, here] = [await read(reader), await read(owner)]
  assert.equal(there.as_of_seq, here.as_of_seq)
  assert.deepEqual(there.messages, here.messages)
  assert.deepEqual(there.session, here.session)
})

for (const [messages, has_more] of [
  [100, false],
  [101, true]
] as const) {
  test(`a snapshot of a history of ${messages} messages holds the newest 100 and says that there is ${has_more ? 'more' : 'no more'}`, async t => {
    const first = await startAgent(t, scriptedLlm('x'))
    const { session_id, home } = first
    await first.prompt('go')
    await first.settled(1)
    await first.stop()
    const records = Array.from({ length: messages }, (_, n) => ({
      type: 'message',
      id: `m${n}`,
      role: 'user',
      content: [{ type: 'text', text: `${n}` }],
      time: n
    }))
    const wire = (await readdir(home, { recursive: true })).find(name => name.endsWith('wire.jsonl')) ?? ''
    await writeFile(join(home, wire), records.map(record => `${JSON.stringify(record)}\n`).join(''))
    const agent = await startAgent(t, scriptedLlm('x'), { home, session_id })

    const { messages: page } = (await agent.call(readSnapshot, { params: { session_id } })).data

    assert.deepEqual([page.items.length, page.items.at(-1)?.id, page.has_more], [100, `m${messages - 1}`, has_more])
  })
}
