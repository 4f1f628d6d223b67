import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyFiles } from '../../../features/fork/copy-files.ts'
import { fork as copySession, type ForkPorts } from '../../../features/fork/fork.ts'
import { createChild, forkSession } from '../../../features/fork/index.ts'
import fork from '../../../features/fork/pack.ts'
import { readGoal } from '../../../features/goals/index.ts'
import goals from '../../../features/goals/pack.ts'
import { defineRecord, Histories, HistoryStates, type StateSpec, sessionForked } from '../../../features/history/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { listPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import {
  archiveSession,
  deleteSession,
  listChildren,
  listSessions,
  readSession,
  SessionBusy,
  SessionChecks,
  updateProfile
} from '../../../features/sessions/index.ts'
import tools from '../../../features/tools/pack.ts'
import { readTranscript } from '../../../features/transcript/index.ts'
import transcript from '../../../features/transcript/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import { AppError, definePack, Type } from '../../../kernel/index.ts'
import { countFlushes } from '../../helpers/flushes.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, echoRunner, insider, type Started, type StartOptions, startAgent, waitsAtTurnEnd } from '../agent/start.ts'

const never = new Promise<never>(() => undefined)

async function start(t: Parameters<typeof startAgent>[0], llm = scriptedLlm('answer'), options: StartOptions = {}) {
  const inside = insider()
  const agent = await startAgent(t, llm, { ...options, packs: [fork, inside.pack, ...(options.packs ?? [])] })
  const of = (session_id: string) => ({ params: { session_id } })
  return {
    ...agent,
    inside,
    fork: (session_id = agent.session_id, body?: { title?: string; metadata?: Record<string, unknown> }) =>
      agent.call(forkSession, { ...of(session_id), ...(body ? { body } : {}) }),
    child: (session_id = agent.session_id, body: { title?: string; metadata?: Record<string, unknown> } = {}) =>
      agent.call(createChild, { ...of(session_id), body }),
    messages: async (session_id: string) => (await agent.call(listMessages, of(session_id))).data.items,
    say: (session_id: string, text: string) => agent.call(submitPrompt, { ...of(session_id), body: { content: [{ type: 'text', text }] } }),
    ended: (session_id: string, count: number) => {
      let seen = 0
      return agent.waitFor(event => event.type === 'prompt.completed' && event.session_id === session_id && ++seen === count)
    }
  }
}
const contents = (items: readonly { role: string; content: unknown }[]) => items.map(({ role, content }) => [role, content])
/** Directories of the workspace of a session. */
async function directories({ home }: Pick<Started, 'home'>): Promise<string[]> {
  const root = join(home, 'sessions')
  const [workspace = ''] = (await readdir(root)).filter(name => !name.startsWith('.'))
  return (await readdir(join(root, workspace))).sort()
}

test('a fork has the conversation, the facts and the media of its source, and each goes its own way from there', async t => {
  const llm = scriptedLlm(request => `answer ${request.messages.length}`)
  const agent = await start(t, llm)
  const { session_id } = agent
  const params = { session_id }
  const data = Buffer.alloc(9000, 7).toString('base64')
  const image = { type: 'image' as const, source: { kind: 'base64' as const, media_type: 'image/png', data } }
  await agent.call(submitPrompt, { params, body: { content: [{ type: 'text', text: 'look' }, image] } })
  await agent.settled(1)
  await agent.call(updateProfile, { params, body: { title: 'Mine', metadata: { color: 'red', size: 1 } } })
  const source = (await agent.call(readSession, { params })).data
  const before = await agent.messages(session_id)

  const reply = await agent.fork(session_id, { metadata: { size: 2, cwd: '/elsewhere', goal: 'x' } })

  assert.equal(reply.code, 0)
  const { id, title, metadata, created_at, ...facts } = reply.data
  assert.notEqual(id, session_id)
  assert.equal(title, 'Fork: Mine')
  assert.deepEqual(metadata, { color: 'red', size: 2, cwd: agent.cwd })
  assert.ok(created_at >= source.created_at)
  const { id: _id, title: _title, metadata: _metadata, created_at: _at, ...same } = source
  assert.deepEqual(facts, same)
  assert.deepEqual((await agent.call(readSession, { params: { session_id: id } })).data, reply.data)
  const copied = await agent.messages(id)
  assert.deepEqual(contents(copied), contents(before))
  assert.ok(copied.every(message => message.session_id === id))

  await agent.say(id, 'in the fork')
  await agent.ended(id, 1)
  assert.match(JSON.stringify(llm.requests.at(-1)?.messages), /look.*answer.*in the fork/)
  assert.equal(llm.requests.at(-1)?.cache_key, id)
  assert.deepEqual(await agent.messages(session_id), before)
  await agent.say(session_id, 'in the source')
  await agent.ended(session_id, 2)
  assert.ok(!JSON.stringify(await agent.messages(id)).includes('in the source'))
})

test('a fork is announced once, with a journal of its own; nothing of the source is told again', async t => {
  const agent = await start(t)
  await agent.prompt('one')
  await agent.settled(1)
  const before = agent.events.length

  const { data } = await agent.fork()

  const told = agent.events.slice(before)
  assert.deepEqual(
    told.map(({ type }) => type),
    ['event.session.created']
  )
  assert.deepEqual((told[0]!.payload as { session: unknown }).session, data)
  const snapshot = (await agent.call(readSnapshot, { params: { session_id: data.id } })).data
  assert.equal(snapshot.as_of_seq, 1)
  assert.equal(snapshot.session.usage.output_tokens, 5)
  await agent.kernel.unload('sessions')
  await agent.kernel.load('sessions')
  assert.equal((await agent.messages(data.id)).length, 3)
  assert.ok(!agent.events.slice(before + 1).some(({ type }) => /^(turn|prompt)\./.test(type)))
})

test('prompts and notices that come while files are copied are for the source alone', async t => {
  const llm = scriptedLlm('answer')
  const [copying, go] = [latch(), latch()]
  const slow = definePack({
    name: 'slow',
    setup: ctx =>
      ctx.contribute(SessionChecks, {
        name: 'slow',
        async check() {
          if (!asked) return
          copying.open()
          await go.opened
        }
      })
  })
  let asked = false
  const agent = await start(t, llm, { packs: [transcript, slow] })
  const { session_id } = agent
  await agent.prompt('one')
  await agent.settled(1)
  const main = await agent.inside.main(agent)
  const notice = { content: 'news', origin: { kind: 'task' }, admission: 'activeOrNewTurn' } as const

  asked = true
  const forking = agent.fork()
  await copying.opened
  await agent.say(session_id, 'two')
  await main.inject(notice)
  await agent.say(session_id, 'three')
  go.open()
  const { data: copy } = await forking
  await agent.ended(session_id, 3)

  const params = { session_id: copy.id }
  assert.equal(copy.last_prompt, 'one')
  assert.deepEqual((await agent.call(listPrompts, { params })).data, { active: null, queued: [] })
  assert.equal((await agent.messages(copy.id)).length, 3)
  const page = (await agent.call(readTranscript, { params, query: { agent_id: 'main' } })).data
  assert.deepEqual([page.items.length, page.prompts.map(({ status }) => status)], [1, ['completed']])
  assert.equal((await agent.call(readSession, { params })).data.busy, false)
  assert.equal(llm.requests.length, 3)
})

test('children of any depth are listed under the session they were made of; plain forks and archived children are not', async t => {
  const agent = await start(t)
  const { session_id } = agent
  await agent.prompt('one')
  await agent.settled(1)
  const child = (await agent.child()).data
  assert.equal(child.title, 'Child: one')
  assert.deepEqual([child.metadata.parent_session_id, child.metadata.child_session_kind], [session_id, 'child'])
  const grandchild = (await agent.child(child.id, { title: 'small', metadata: { parent_session_id: 'me', x: 1 } })).data
  assert.deepEqual([grandchild.title, grandchild.metadata.parent_session_id, grandchild.metadata.x], ['small', child.id, 1])
  const forked = (await agent.fork(child.id)).data
  assert.equal(forked.metadata.parent_session_id, undefined)
  const second = (await agent.child()).data

  const children = async (id: string, query: Record<string, unknown> = {}) => {
    const { data } = await agent.call(listChildren, { params: { session_id: id }, query })
    return [data.items.map(item => item.id), data.has_more]
  }
  const both = [child.id, second.id].sort().reverse()
  assert.deepEqual(await children(session_id), [both, false])
  assert.deepEqual(await children(session_id, { page_size: 1 }), [both.slice(0, 1), true])
  assert.deepEqual(await children(session_id, { before_id: both[0] }), [both.slice(1), false])
  assert.deepEqual(await children(session_id, { busy: true }), [[], false])
  assert.deepEqual(await children(child.id), [[grandchild.id], false])
  assert.deepEqual(await children(forked.id), [[], false])
  await agent.call(archiveSession, { params: { session_id: second.id } })
  assert.deepEqual(await children(session_id), [[child.id], false])
  const refused = await agent.call(listChildren, { params: { session_id }, query: { before_id: 'a', after_id: 'b' } })
  assert.equal(refused.code, 40001)
  assert.equal((await agent.call(listChildren, { params: { session_id: 'session_nope' } })).code, 40401)
  assert.equal((await agent.fork('session_nope')).code, 40401)
  assert.equal((await agent.fork(session_id, { title: '' })).code, 40001)
  assert.match(String((await agent.rest.raw('POST', `/api/v1/sessions/${session_id}/children`)).body), /40001/)
})

test('while a turn of any agent runs there is no fork; what comes while files are copied waits', async t => {
  const agent = await start(
    t,
    scriptedLlm(({ messages }) => (JSON.stringify(messages).includes('hang') ? [{ type: 'wait', until: never }] : 'answer'))
  )
  const { session_id } = agent
  const main = await agent.inside.main(agent)
  const sub = await main.host.session.createAgent({ type: 'sub' })
  const worker = await agent.inside.agents.of(sub)
  const work = worker.run({ content: [{ type: 'text', text: 'hang' }] })
  await agent.waitFor(({ type, payload }) => type === 'turn.started' && (payload as { turnId: number }).turnId === 0)

  assert.equal((await agent.fork()).code, 40901)
  assert.equal((await agent.child()).code, 40901)
  await worker.abort(true)
  await work

  const [forked, prompt] = await Promise.all([agent.fork(), agent.say(session_id, 'meanwhile')])
  assert.deepEqual([forked.code === 0 || forked.code === 40901, prompt.code], [true, 0])
  await agent.ended(session_id, 1)
  const again = await agent.fork()
  assert.equal(again.code, 0)
  const copy = await agent.inside.sessions.load(again.data.id)
  assert.deepEqual(
    copy.agents().map(({ id }) => id),
    ['main', sub.id]
  )
})

test('forks, children and undos that are asked for at once are done one after the other', async t => {
  const agent = await start(t, scriptedLlm('answer'), { packs: [undo] })
  await agent.say(agent.session_id, 'one')
  await agent.ended(agent.session_id, 1)
  const undone = agent.call(undoSession, { params: { session_id: agent.session_id } })
  const replies = await Promise.all([agent.fork(), agent.fork(), undone, agent.child(), agent.fork()])
  assert.deepEqual(
    replies.map(({ code, msg }) => [code, msg]),
    replies.map(() => [0, 'success'])
  )
})

test('every file goes along but state, locks, logs and links; a source without a conversation can be forked', async t => {
  const agent = await start(t)
  const { session_id } = agent
  const empty = (await agent.fork()).data
  assert.equal(empty.title, 'Fork: ')
  assert.deepEqual(await agent.messages(empty.id), [])
  await agent.prompt('one')
  await agent.settled(1)
  const { dir } = await agent.inside.sessions.load(session_id)
  await mkdir(join(dir, 'agents', 'main', 'plans'), { recursive: true })
  await mkdir(join(dir, 'logs'))
  await writeFile(join(dir, 'agents', 'main', 'plans', 'a.md'), 'plan')
  await writeFile(join(dir, 'agents', 'main', 'plans', 'a.md.lock'), '')
  await writeFile(join(dir, 'logs', 'x.log'), 'log')
  await symlink('/etc', join(dir, 'agents', 'main', 'link'))

  const { data } = await agent.fork()

  const copy = await agent.inside.sessions.load(data.id)
  assert.ok((await readdir(dir)).some(name => name.startsWith('.lease-')))
  const found = (await readdir(copy.dir, { recursive: true })).sort()
  assert.deepEqual(found, [
    'agents',
    'agents/main',
    'agents/main/plans',
    'agents/main/plans/a.md',
    'agents/main/wire.jsonl',
    'lock',
    'state.json'
  ])
  assert.equal(await readFile(join(copy.dir, 'agents', 'main', 'plans', 'a.md'), 'utf8'), 'plan')

  const source = await agent.inside.sessions.load(session_id)
  source.work.turnStarted('agent-0')
  assert.equal((await agent.fork()).code, 40901, 'a turn of whatever agent')
  source.work.turnEnded('agent-0', 'completed')
  const others = Object.create(source, {
    assertWritable: {
      value() {
        throw new AppError(SessionBusy)
      }
    }
  })
  await assert.rejects(copySession({} as ForkPorts, others, { title: 'x' }), { code: 40901 }, 'one of another server')
})

test('every copied file is on the medium before the copy counts', async t => {
  const [from, to] = [await freshDir(), await freshDir()]
  await mkdir(join(from, 'agents'))
  for (const name of ['a', 'agents/b']) await writeFile(join(from, name), name)
  const flushes = await countFlushes(t)

  await copyFiles(from, to)

  assert.equal(flushes(), 2)
  assert.equal(await readFile(join(to, 'agents', 'b'), 'utf8'), 'agents/b')
})

test('what must not exist twice ends in the copy, whatever the record says; what was remembered goes on', async t => {
  const flag = defineRecord('test.flag', Type.Object({ on: Type.Boolean() }))
  const state = (name: string, ends: boolean): StateSpec<boolean> => ({
    name,
    version: 1,
    initial: () => false,
    reduce: (value, record) => (flag.is(record) ? record.on : ends && sessionForked.is(record) ? false : value)
  })
  const [schedule, mode] = [state('schedule', true), state('mode', false)]
  let histories: Histories | undefined
  const probe = definePack({
    name: 'probe',
    needs: { histories: Histories },
    setup(ctx, services) {
      histories = services.histories
      ctx.contribute(HistoryStates, schedule)
      ctx.contribute(HistoryStates, mode)
    }
  })
  const agent = await start(t, scriptedLlm('answer'), { packs: [probe] })
  await agent.prompt('one')
  await agent.settled(1)
  const values = async (session_id: string) => {
    const history = await histories!.of((await agent.inside.agents.main(session_id)).host)
    return [(await history.track(schedule)).value, (await history.track(mode)).value]
  }
  await (await histories!.of((await agent.inside.main(agent)).host)).append(flag.of({ on: true }))

  const { data } = await agent.fork()

  assert.deepEqual(await values(data.id), [false, true])
  assert.deepEqual(await values(agent.session_id), [true, true])
})

test('a copy that fails or whose process dies leaves no session behind', async t => {
  const agent = await start(t)
  await agent.prompt('one')
  await agent.settled(1)
  const { sessions } = agent.inside
  const source = await sessions.load(agent.session_id)
  const before = await directories(agent)
  const reached = latch()
  await assert.rejects(
    sessions.copy(source, { title: 'x' }, async dir => {
      await writeFile(join(dir, 'half'), '')
      throw new Error('disk full')
    }),
    /disk full/
  )
  assert.deepEqual(await directories(agent), before)
  const hanging = sessions.copy(source, { title: 'x' }, async dir => {
    await mkdir(join(dir, 'agents', 'main'), { recursive: true })
    reached.open()
    await never
  })
  hanging.catch(() => undefined)
  await reached.opened
  assert.equal((await agent.call(listSessions)).data.items.length, 1)
  const home = await copyOfHome(agent.home)
  assert.ok((await directories({ home })).some(name => name.startsWith('.new-')))

  const again = await start(t, scriptedLlm('answer'), { home, session_id: agent.session_id })

  assert.deepEqual(
    (await again.call(listSessions)).data.items.map(({ id }) => id),
    [agent.session_id]
  )
  await again.stop()
  assert.deepEqual(
    await directories({ home }),
    before.filter(name => !name.endsWith('.lock'))
  )
})

test('what a copy has on record since it was made, and nobody heard when its server was killed, is told at the next start', async t => {
  const agent = await start(t)
  await agent.prompt('one')
  await agent.settled(1)
  const { id } = (await agent.fork()).data
  const whole = { session_ids: [id], cursors: { [id]: { seq: 0 } } }
  const socket = await agent.connect()
  await socket.request('subscribe', whole)
  await agent.say(id, 'two')
  await socket.next('prompt.completed')
  const home = await copyOfHome(agent.home)
  const journal = join(home, 'server', 'events', `${id}.jsonl`)
  const [header] = (await readFile(journal, 'utf8')).split('\n')
  await writeFile(journal, `${header}\n`)

  const again = await start(t, scriptedLlm('answer'), { home, session_id: id })
  await again.inside.main(again)
  const later = await again.connect()
  await later.request('subscribe', whole)

  const told = later.frames.flatMap(({ type, session_id }) => (session_id === id ? type : []))
  const wanted = ['prompt.submitted', 'turn.started', 'turn.ended', 'prompt.completed']
  assert.deepEqual(
    told.filter(type => wanted.includes(type)),
    wanted
  )
})

test('a session that is deleted while it is copied is neither copied nor there again', async t => {
  let isAsked = false
  const deleting = definePack({
    name: 'deleting',
    setup: ctx =>
      ctx.contribute(SessionChecks, {
        name: 'deleting',
        async check() {
          if (isAsked) assert.equal((await agent.call(deleteSession, { params: { session_id: agent.session_id } })).code, 0)
        }
      })
  })
  const agent = await start(t, scriptedLlm('answer'), { packs: [deleting] })
  isAsked = true
  assert.equal((await agent.fork()).code, 40401)
  assert.deepEqual((await agent.call(listSessions)).data.items, [])
  const left = await readdir(join(agent.home, 'sessions'), { recursive: true })
  assert.deepEqual(
    left.filter(name => name.includes('session_')),
    []
  )
})

test('a tool call and its result go along, and a copy can be copied', async t => {
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'done')
  const agent = await start(t, llm, { packs: [echoRunner()] })
  await agent.prompt('one')
  await agent.settled(1)
  const first = (await agent.fork()).data
  const second = (await agent.fork(first.id)).data
  assert.equal(second.title, 'Fork: Fork: one')
  assert.deepEqual(contents(await agent.messages(second.id)), contents(await agent.messages(agent.session_id)))
  await agent.say(second.id, 'more')
  await agent.ended(second.id, 1)
  const roles = llm.requests.at(-1)?.messages.map(({ role }) => role)
  assert.deepEqual(roles?.filter(role => role === 'tool').length, 1)
})

test('a goal stays with the session that has it, and the model of the copy is told', async t => {
  const llm = scriptedLlm('answer')
  const agent = await start(t, llm, { packs: [tools, goals] })
  const params = { session_id: agent.session_id }
  await agent.call(updateProfile, { params, body: { agent_config: { goal_objective: 'ship it' } } })
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal((await agent.call(updateProfile, { params, body: { agent_config: { goal_control: 'pause' } } })).code, 0)
  const main = await agent.inside.main(agent)
  await main.abort(false)

  const { data } = await agent.fork()

  assert.equal((await agent.call(readGoal, { params: { session_id: data.id } })).data, null)
  assert.equal((await agent.call(readGoal, { params })).data?.status, 'paused')
})

test('a fork that comes when clients know the end of a turn waits for the taps of that end', async t => {
  const taps = latch()
  const end = waitsAtTurnEnd(taps.opened)
  const scene = await start(t, scriptedLlm('answer'), { packs: [end] })
  await scene.prompt('one')
  await scene.waitFor(({ type }) => type === 'turn.ended')
  const forked = scene.fork()
  const answers = scene.messages(scene.session_id) // whose answer comes after the other request was read
  await answers
  taps.open()
  assert.equal((await forked).code, 0)
})
