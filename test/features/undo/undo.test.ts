import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnHooks } from '../../../features/agent/index.ts'
import compaction from '../../../features/compaction/pack.ts'
import { defineRecord, Histories, type History, HistoryStates, type StateSpec, UndoFollowers } from '../../../features/history/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import permissions from '../../../features/permissions/pack.ts'
import { steerPrompts } from '../../../features/prompts/index.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { readSession, updateProfile } from '../../../features/sessions/index.ts'
import todo from '../../../features/todo/pack.ts'
import tools from '../../../features/tools/pack.ts'
import transcript from '../../../features/transcript/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import { definePack, Type } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { type ScriptedLlm, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, insider, type Started, type StartOptions, startAgent } from '../agent/start.ts'

const never = new Promise<never>(() => undefined)
const flag = defineRecord('test.flag', Type.Object({ on: Type.Boolean() }))
/** A mode of a pack. */
const mode: StateSpec<boolean> = {
  name: 'test.mode',
  version: 1,
  rewinds: true,
  initial: () => false,
  reduce: (state, record) => (flag.is(record) ? record.on : state)
}

interface Undoing extends Started {
  undo(body?: { count?: number; page_size?: number }): ReturnType<typeof callUndo>
  /** What is left of prompts and answers, oldest first. */
  texts(): Promise<string[]>
  history(): Promise<History>
}
const callUndo = (agent: Started, body?: { count?: number; page_size?: number }) =>
  agent.call(undoSession, { params: { session_id: agent.session_id }, ...(body ? { body } : {}) })

async function start(t: Parameters<typeof startAgent>[0], llm: ScriptedLlm, options: StartOptions = {}): Promise<Undoing> {
  const inside = insider()
  let histories: Histories | undefined
  const probe = definePack({
    name: 'probe',
    needs: { histories: Histories },
    setup(ctx, services) {
      histories = services.histories
      ctx.contribute(HistoryStates, mode)
    }
  })
  const agent = await startAgent(t, llm, { ...options, packs: [undo, compaction, inside.pack, probe, ...(options.packs ?? [])] })
  const params = { session_id: agent.session_id }
  return {
    ...agent,
    undo: body => callUndo(agent, body),
    async texts() {
      const { items } = (await agent.call(listMessages, { params })).data
      const shown = items.filter(({ metadata }) => (metadata?.origin as { kind?: string } | undefined)?.kind !== 'injection')
      return shown.map(({ content }) => String(content[0]?.text)).reverse()
    },
    history: async () => await histories!.of((await inside.main(agent)).host)
  }
}

/** So many turns, one after the other. */
async function turns(agent: Undoing, ...texts: string[]): Promise<void> {
  const before = agent.events.filter(({ type }) => type === 'prompt.completed').length
  for (const [at, text] of texts.entries()) {
    await agent.prompt(text)
    await agent.settled(before + at + 1)
  }
}

test('an undo takes back turns, answers with what is left, and everything that follows from them is as before', async t => {
  const llm = scriptedLlm(request => `answer to ${request.messages.length}`)
  const agent = await start(t, llm)
  const params = { session_id: agent.session_id }
  await turns(agent, 'one')
  const history = await agent.history()
  const tracked = await history.track(mode)
  const tokens = (await agent.call(readStatus, { params })).data.context_tokens
  await turns(agent, 'two')
  await history.append(flag.of({ on: true }))
  await turns(agent, 'three')
  const before = agent.events.length

  const reply = await agent.undo({ count: 2, page_size: 1 })

  assert.equal(reply.code, 0)
  assert.deepEqual(
    agent.events.slice(before).map(({ type, payload }) => [type, (payload as { patch?: object }).patch]),
    [
      ['session.meta.updated', { lastPrompt: 'one' }],
      ['context.undone', undefined],
      ['agent.status.updated', undefined]
    ]
  )
  assert.deepEqual([reply.data.messages.items.length, reply.data.messages.has_more], [1, true])
  assert.match(String(reply.data.messages.items[0]?.content[0]?.text), /^answer/)
  assert.equal(reply.data.status.context_tokens, tokens)
  assert.equal(tracked.value, false)
  assert.deepEqual((await agent.texts()).slice(0, 1), ['one'])
  const session = (await agent.call(readSession, { params })).data
  assert.equal(session.last_prompt, 'one')

  await turns(agent, 'four')
  const last = JSON.stringify(llm.requests.at(-1)?.messages)
  assert.ok(last.includes('one') && last.includes('four') && !last.includes('two') && !last.includes('three'))
  assert.equal((await agent.call(readSession, { params })).data.last_prompt, 'four')
})

test('a prompt that a hook blocked on its way into the running turn goes with that turn; one that was blocked alone goes alone', async t => {
  const more = latch()
  const llm = scriptedLlm('answer', [
    { type: 'wait', until: more.opened },
    { type: 'text', text: 'long' },
    { type: 'finish', reason: 'completed' }
  ])
  const guard = definePack({
    name: 'guard',
    needs: { hooks: TurnHooks },
    setup: (ctx, { hooks }) =>
      ctx.tap(hooks.beforePrompt, ({ content }) => (String(content[0]?.text) === 'bad' ? { event: 'Guard', reason: 'no' } : undefined))
  })
  const agent = await start(t, llm, { packs: [guard] })
  const params = { session_id: agent.session_id }
  await turns(agent, 'one')
  await agent.prompt('two')
  await llm.arrived(1)
  const { prompt_id } = await agent.prompt('bad')
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })).code, 40402)
  more.open()
  await agent.settled(3)
  await turns(agent, 'bad')

  assert.equal((await agent.undo()).code, 0)
  assert.deepEqual((await agent.texts()).slice(0, 3), ['one', 'answer', 'two'])
  assert.equal((await agent.undo()).code, 0)
  assert.deepEqual(await agent.texts(), ['one', 'answer'])
  assert.equal((await agent.call(readSession, { params })).data.last_prompt, 'one')
})

test('a prompt that came while turns were taken back is the last one, also after a kill', async t => {
  const agent = await start(t, scriptedLlm('answer'))
  const { session_id } = agent
  const params = { session_id }
  await turns(agent, 'one', 'two')

  const [undone] = await Promise.all([agent.undo(), agent.prompt('racing')])
  await agent.settled(3)

  assert.equal(undone.code, 0)
  assert.deepEqual(await agent.texts(), ['one', 'answer', 'racing', 'answer'])
  assert.equal((await agent.call(readSession, { params })).data.last_prompt, 'racing')
  const patches = agent.events.flatMap(({ type, payload }) =>
    type === 'session.meta.updated' ? [(payload as { patch: object }).patch] : []
  )
  assert.deepEqual(patches.at(-1), { lastPrompt: 'racing' })
  const again = await start(t, scriptedLlm('answer'), { home: await copyOfHome(agent.home), session_id })
  assert.equal((await again.texts()).length, 4)
  assert.equal((await again.call(readSession, { params })).data.last_prompt, 'racing')
})

test('who watches, and who comes back afterwards, is told to take the snapshot; whose transcript says it already is not', async t => {
  const agent = await start(t, scriptedLlm('one', 'two'), { packs: [transcript] })
  const { session_id } = agent
  await turns(agent, 'first', 'second')
  const { as_of_seq: seq, epoch } = (await agent.call(readSnapshot, { params: { session_id } })).data
  const [watcher, reader] = [await agent.connect(), await agent.connect()]
  await watcher.request('subscribe', { session_ids: [session_id] })
  await reader.request('subscribe_v2', { session_id, transcript: { main: 'delta' } })
  assert.equal((await agent.undo()).code, 0)

  const { payload } = await watcher.next('resync_required')
  await reader.next(frame => frame.type === 'transcript.ops' && JSON.stringify(frame.payload).includes('items.remove'))
  const late = await agent.connect()
  const ack = await late.request('client_hello', {
    client_id: 'late',
    subscriptions: [session_id],
    cursors: { [session_id]: { seq, epoch } }
  })
  const undone = watcher.frames.find(({ type }) => type === 'context.undone')
  assert.deepEqual([payload.session_id, payload.current_seq, payload.epoch], [session_id, undone?.seq, epoch])
  assert.equal(undone?.payload.turns, 1)
  assert.deepEqual(ack.payload.resync_required, [session_id])
  assert.equal(reader.frames.filter(({ type }) => type === 'resync_required' || type === 'context.undone').length, 0)
  // What the snapshot of now says, nobody is told once more.
  const now = (await agent.call(readSnapshot, { params: { session_id } })).data
  const again = await late.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq: now.as_of_seq, epoch } } })
  assert.deepEqual(again.payload.resync_required, [])
})

test('after a restart what was taken back stays away, and the newest prompt that is left is known', async t => {
  const agent = await start(t, scriptedLlm('answer'))
  const { session_id } = agent
  await turns(agent, 'one', 'two')
  assert.equal((await agent.undo()).code, 0)
  const home = await copyOfHome(agent.home)
  const left = await agent.texts()

  const again = await start(t, scriptedLlm('answer'), { home, session_id })

  assert.deepEqual(await again.texts(), left)
  assert.equal((await again.call(readSession, { params: { session_id } })).data.last_prompt, 'one')
  assert.ok(!again.events.some(({ type }) => type === 'session.meta.updated'))
  assert.equal((await again.undo()).code, 0)
  assert.deepEqual(await again.texts(), [])
  const session = (await again.call(readSession, { params: { session_id } })).data
  assert.deepEqual([session.last_prompt, session.title], [undefined, ''])
  const meta = again.events.find(({ type }) => type === 'session.meta.updated')?.payload as { title: string; patch: object }
  assert.deepEqual([meta.title, meta.patch], ['', { title: '', lastPrompt: '' }])
  await turns(again, 'three')
  assert.equal((await again.call(readSession, { params: { session_id } })).data.title, 'three')
})

test('a title that somebody chose stays when all prompts are taken back', async t => {
  const agent = await start(t, scriptedLlm('answer'))
  const params = { session_id: agent.session_id }
  await turns(agent, 'one')
  await agent.call(updateProfile, { params, body: { title: 'Mine' } })

  await agent.undo()

  const { title, last_prompt } = (await agent.call(readSession, { params })).data
  assert.deepEqual([title, last_prompt], ['Mine', undefined])
})

test('too many turns are refused with the reason, and nothing changes', async t => {
  const agent = await start(t, scriptedLlm('answer'))
  const refused = async (body: { count?: number }) => {
    const { code, data } = await agent.undo(body)
    return [code, data]
  }
  assert.deepEqual(await refused({ count: 3 }), [40911, { reason: 'empty', requestedCount: 3, undoableCount: 0 }])
  await turns(agent, 'one')
  assert.deepEqual(await refused({ count: 2 }), [40911, { reason: 'insufficient', requestedCount: 2, undoableCount: 1 }])
  const { compactSession } = await import('../../../features/compaction/index.ts')
  await agent.call(compactSession, { params: { session_id: agent.session_id } })
  await agent.waitFor(({ type }) => type === 'compaction.completed')
  let idle = 0
  await agent.waitFor(({ type, payload }) => type === 'event.session.work_changed' && !(payload as { busy: boolean }).busy && ++idle === 2)
  assert.deepEqual(await refused({}), [40911, { reason: 'compaction_boundary', requestedCount: 1, undoableCount: 0 }])
  await turns(agent, 'two')
  assert.deepEqual(await refused({ count: 2 }), [40911, { reason: 'compaction_boundary', requestedCount: 2, undoableCount: 1 }])
  const texts = await agent.texts()
  assert.equal(texts.length, 5)
  assert.equal((await agent.undo()).code, 0)
  assert.deepEqual(await agent.texts(), texts.slice(0, 3))
  for (const body of [{ count: 0 }, { count: 1.5 }, { page_size: 0 }, { page_size: 101 }])
    assert.equal((await agent.undo(body)).code, 40001)
})

test('while a turn runs or a compaction does, undo is refused as busy', async t => {
  const waiting = [{ type: 'wait', until: never } as const]
  const agent = await start(
    t,
    scriptedLlm(({ messages }) => (/hang|replaced by a note/.test(JSON.stringify(messages)) ? waiting : 'answer'))
  )
  await turns(agent, 'one')
  const { compactSession } = await import('../../../features/compaction/index.ts')
  await agent.call(compactSession, { params: { session_id: agent.session_id } })
  assert.equal((await agent.undo()).code, 40901)
  const { abortSession } = await import('../../../features/prompts/index.ts')
  await agent.call(abortSession, { params: { session_id: agent.session_id } })
  await agent.waitFor(({ type }) => type === 'compaction.cancelled')
  await agent.prompt('hang')
  await agent.waitFor(({ type, payload }) => type === 'turn.step.started' && (payload as { turnId: number }).turnId === 1)
  assert.equal((await agent.undo()).code, 40901)
})

test('several undos at once are done one after the other', async t => {
  const agent = await start(t, scriptedLlm('answer'))
  await turns(agent, 'one', 'two', 'three')

  const replies = await Promise.all([agent.undo(), agent.undo(), agent.undo(), agent.undo()])

  assert.deepEqual(
    replies.map(({ code }) => code),
    [0, 0, 0, 40911]
  )
  assert.deepEqual(await agent.texts(), [])
})

test('the snapshot and the prompt queue agree after an undo, and the ids of what was taken back are not given again', async t => {
  const agent = await start(t, scriptedLlm('answer'))
  const params = { session_id: agent.session_id }
  await turns(agent, 'one', 'two')
  const ids = (await agent.call(listMessages, { params })).data.items.map(({ id }) => id)
  await agent.undo()
  await turns(agent, 'three')

  const snapshot = (await agent.call(readSnapshot, { params })).data
  const after = snapshot.messages.items.map(({ id }) => id)
  const kept = after.filter(id => ids.includes(id))
  assert.deepEqual(kept, [...ids].reverse().slice(0, kept.length))
  assert.equal(new Set(after).size, after.length)
  assert.equal(snapshot.in_flight_turn, null)
})

test('the todo list and the summary that holds it: both are what they were before the turn', async t => {
  const list = (title: string) => toolCalls({ id: title, name: 'TodoList', args: { todos: [{ title, status: 'pending' }] } })
  const llm = scriptedLlm(list('first'), 'noted', list('second'), 'noted', 'answer')
  const agent = await start(t, llm, { packs: [tools, permissions, todo] })
  await turns(agent, 'one', 'two')
  assert.equal((await agent.undo()).code, 0)

  const { compactSession } = await import('../../../features/compaction/index.ts')
  await agent.call(compactSession, { params: { session_id: agent.session_id } })
  const { payload } = await agent.waitFor(({ type }) => type === 'compaction.completed')
  await agent.prompt('three')
  await agent.settled(3)

  assert.equal((payload as { result: { keptUserMessageCount: number } }).result.keptUserMessageCount, 1)
  const seen = JSON.stringify(llm.requests.at(-1)?.messages)
  assert.ok(seen.includes('first') && !seen.includes('second'))
})

test('an undo stands, also when work of its turns could not be ended', async t => {
  const failing = definePack({
    name: 'failing',
    setup: ctx =>
      ctx.contribute(UndoFollowers, {
        name: 'failing',
        async undone() {
          throw new Error('it goes on')
        }
      })
  })
  const logged: string[] = []
  const agent = await start(t, scriptedLlm('ok'), { packs: [failing], logged })
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal((await agent.undo()).code, 0)
  assert.deepEqual(await agent.texts(), [])
  assert.match(logged.join(''), /it goes on/)
})
