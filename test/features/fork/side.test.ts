import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { StepInjectors } from '../../../features/agent/index.ts'
import { openSide } from '../../../features/fork/index.ts'
import fork from '../../../features/fork/pack.ts'
import { openSideConversation } from '../../../features/fork/side.ts'
import { Llm, type LlmContent, NoProvider } from '../../../features/llm/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import permissions from '../../../features/permissions/pack.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { Tools } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import transcript from '../../../features/transcript/pack.ts'
import { AppError, defineEvent, definePack, Type } from '../../../kernel/index.ts'
import { stub } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { png } from '../../helpers/png.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, insider, startAgent } from '../agent/start.ts'
import { mediaScene, shownTo, texts } from '../media/scene.ts'
import { scripted } from '../tools/fakes.ts'

const packs = [tools, permissions, fork]

test('a side conversation knows what was said, runs no tools, and leaves the main one as it is', async t => {
  const llm = scriptedLlm('blue it is', toolCalls({ id: 'a', name: 'Bash', args: { command: 'ls' } }), 'blue, as you said')
  const scene = await startAgent(t, llm, { packs })
  const params = { session_id: scene.session_id }
  await scene.prompt('my favourite colour is blue', { model: 'big', thinking: 'high' })
  await scene.settled(1)
  const before = (await scene.call(listMessages, { params })).data.items.length

  const { agent_id } = (await scene.call(openSide, { params })).data
  assert.equal(agent_id, 'agent-0')
  await scene.prompt('which colour?', { agent_id })
  await scene.settled(2)

  const side = llm.requests.slice(1)
  assert.match(JSON.stringify(side[0]?.messages), /my favourite colour is blue.*blue it is.*which colour/)
  assert.match(JSON.stringify(side[0]?.messages), /side conversation/)
  assert.deepEqual([side[0]?.tools, side[0]?.model.alias, side[0]?.effort], [[], 'big', 'high'])
  assert.match(JSON.stringify(side[1]?.messages.at(-1)), /No tools run|not found/)
  assert.equal((await scene.call(listMessages, { params })).data.items.length, before)
  assert.equal((await scene.call(readSession, { params })).data.last_prompt, 'my favourite colour is blue')
  // Nothing that was told before is told again for the new agent.
  assert.equal(scene.events.filter(({ type }) => type === 'turn.started').length, 2)
})

test('what it begins with is what the model of the main conversation sees: reminders apart, calls with their results and notes', async t => {
  const again = { output: 'try it in the morning', is_error: true, note: 'said to the model alone' }
  const reminders = ['today is a holiday']
  const said = definePack({
    name: 'said',
    setup(ctx) {
      ctx.contribute(Tools, scripted({ name: 'Ask', run: () => again }))
      ctx.contribute(StepInjectors, { variant: 'day', inject: () => reminders.splice(0).map(text => ({ text }))[0] })
    }
  })
  const llm = scriptedLlm([{ type: 'text', text: 'let me ask' }, ...toolCalls({ id: 'a', name: 'Ask' })], 'tomorrow', 'side', 'main')
  const scene = await startAgent(t, llm, { packs: [...packs, said] })
  await scene.prompt('when?', { permission_mode: 'yolo' })
  await scene.settled(1)

  const { agent_id } = (await scene.call(openSide, { params: { session_id: scene.session_id } })).data
  await scene.prompt('aside', { agent_id })
  await scene.settled(2)
  await scene.prompt('go on')
  await scene.settled(3)

  const [, , side, main] = llm.requests
  const before = main?.messages.slice(
    0,
    main.messages.findIndex(message => JSON.stringify(message).includes('go on'))
  )
  assert.match(JSON.stringify(before), /when\?.*holiday.*let me ask.*try it in the morning.*said to the model alone.*tomorrow/)
  assert.deepEqual(side?.messages.slice(0, before?.length), before)
})

test('it sees the media of the main conversation: images of prompts, uploads, and files that it may read', async t => {
  const scene = await mediaScene(t, ['image_in'], ['seen', 'side', 'main'], { packs: [fork] })
  const inline = { kind: 'base64', media_type: 'image/png', data: png(60, 60, { noise: true }).toString('base64') }
  const picture = await scene.upload(png(8, 8), 'small.png', 'image/png')
  const { id: file_id, name, media_type, size } = await scene.upload('words', 'notes.md', 'text/markdown')
  await scene.submit(
    { type: 'image', source: inline },
    { type: 'image', source: { kind: 'file', file_id: picture.id } },
    { type: 'file', file_id, name, media_type, size }
  )
  await scene.settled(1)

  const { agent_id } = (await scene.call(openSide, { params: { session_id: scene.session_id } })).data
  await scene.prompt('aside', { agent_id })
  await scene.settled(2)
  await scene.prompt('go on')
  await scene.settled(3)

  const [, side, main] = scene.llm.requests.map(({ messages }) => messages[0]?.content ?? [])
  assert.equal(main?.filter(({ type }) => type === 'image').length, 2)
  assert.deepEqual(JSON.parse(JSON.stringify(side).replaceAll(`/agents/${agent_id}/`, '/agents/main/')), main)
  const path = /: (\/\S+) - open it/.exec(texts(shownTo([{ role: 'user', content: side as LlmContent[] }])))?.[1]
  assert.equal(await readFile(path ?? '', 'utf8'), 'words')
})

test('media of a message that comes while it opens are there when the message is', async () => {
  const [from, to] = [await freshDir(), await freshDir()]
  const host = { id: 'main', dir: from }
  const ports = {
    agents: {
      main: async () => ({ host, model: () => undefined, settings: () => ({}) }),
      of: async () => ({ configure: async () => undefined, inject: async () => undefined })
    },
    histories: {
      // The last message that it takes in comes now: its picture is on disk before it.
      async copyContext() {
        await mkdir(join(from, 'blobs'), { recursive: true })
        await writeFile(join(from, 'blobs', 'picture'), 'bytes')
      }
    }
  }
  const session = {
    assertWritable: () => undefined,
    agent: () => host,
    createAgent: async (_record: unknown, prepare: (dir: string) => Promise<void>) => await prepare(to)
  }
  await openSideConversation(ports as never, session as never)
  assert.equal(await readFile(join(to, 'blobs', 'picture'), 'utf8'), 'bytes')
})

test('it opens beside a running turn, which goes on', async t => {
  const more = latch()
  const held = [
    { type: 'wait', until: more.opened } as const,
    { type: 'text', text: 'main answer' } as const,
    { type: 'finish', reason: 'completed' } as const
  ]
  const llm = scriptedLlm(held, 'side answer')
  const scene = await startAgent(t, llm, { packs })
  const params = { session_id: scene.session_id }
  await scene.prompt('long work')
  await llm.arrived(0)

  const { agent_id } = (await scene.call(openSide, { params })).data
  await scene.prompt('by the way?', { agent_id })
  await scene.settled(1)
  assert.match(JSON.stringify(llm.requests[1]?.messages), /long work.*by the way/)
  assert.equal((await scene.call(readSession, { params })).data.main_turn_active, true)
  more.open()
  await scene.settled(2)
})

test('what the model was reminded of it is not reminded of again, and of a call that goes on it reads that it goes on', async t => {
  const more = latch()
  const begun = latch()
  const asking = definePack({
    name: 'asking',
    setup(ctx) {
      const run = async () => {
        begun.open()
        await more.opened
        return { output: 'asked' }
      }
      ctx.contribute(Tools, scripted({ name: 'Ask', run }))
    }
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Ask' }), 'side answer', 'main answer')
  const scene = await startAgent(t, llm, { packs: [...packs, transcript, asking] })
  const params = { session_id: scene.session_id }
  await scene.prompt('long work', { permission_mode: 'yolo' })
  await begun.opened

  const { agent_id } = (await scene.call(openSide, { params })).data
  await scene.prompt('by the way?', { agent_id })
  await scene.settled(1)
  const side = llm.requests[1]?.messages ?? []
  assert.equal(JSON.stringify(side).match(/Today is/g)?.length, 1)
  const result = side.find(message => message.role === 'tool')
  assert.deepEqual(
    [result?.content, result?.role === 'tool' && result.is_error],
    [[{ type: 'text', text: 'The call is still running: its result was not there yet when this conversation began.' }], false]
  )
  more.open()
  await scene.settled(2)
})

test('without a model that can be used none opens, and no agent is left', async t => {
  const llm = scriptedLlm()
  const none = () => {
    throw new AppError(NoProvider)
  }
  const scene = await startAgent(t, { ...llm, pack: stub(Llm, { ...llm.llm, resolve: none }) }, { packs })
  const params = { session_id: scene.session_id }
  assert.equal((await scene.call(openSide, { params })).code, NoProvider.code)
  assert.equal(scene.events.filter(({ type }) => type === 'agent.created').length, 0)
})

for (const kind of ['a side conversation', 'another agent', 'an agent that rested'])
  test(`what ${kind} has on record and nobody heard when its server was killed is told, whatever came before it`, async t => {
    let emit: (session_id: string) => void = () => undefined
    const noise = definePack({
      name: 'noise',
      setup(ctx) {
        const noted = ctx.event(defineEvent({ type: 'noted', scope: 'session', durable: true, payload: Type.Object({}) }))
        emit = session_id => noted({}, { session_id })
      }
    })
    const first = insider()
    const scene = await startAgent(t, scriptedLlm('one', 'two'), { packs: [...packs, noise, first.pack] })
    const { session_id } = scene
    await scene.prompt('main')
    await scene.settled(1)
    for (let n = 0; n < 1001; n++) emit(session_id)
    await scene.call(readSnapshot, { params: { session_id } }) // answers when all events are on disk
    const made = async () => (await (await first.sessions.load(session_id)).createAgent({ type: 'sub', parent_agent_id: 'main' })).id
    const opened = async () => (await scene.call(openSide, { params: { session_id } })).data.agent_id
    const agent_id = kind === 'another agent' ? await made() : kind === 'a side conversation' ? await opened() : 'main'
    await scene.prompt('aside', { agent_id })
    await scene.settled(2)
    const home = await copyOfHome(scene.home)
    const journal = join(home, 'server', 'events', `${session_id}.jsonl`)
    const lines = (await readFile(journal, 'utf8')).split('\n')
    const end = lines.findLastIndex(line => line.includes('prompt.submitted') && line.includes(agent_id))
    await writeFile(journal, `${lines.slice(0, end).join('\n')}\n`)

    const inside = insider()
    const again = await startAgent(t, scriptedLlm(), { home, session_id, packs: [...packs, noise, inside.pack] })
    const session = await inside.sessions.load(session_id)
    await inside.agents.of(session.agent(agent_id)!)

    const steps = ['turn.step.started', 'turn.step.completed']
    assert.deepEqual(
      again.events.flatMap(({ type }) => (/^(?:prompt|turn)\./.test(type) ? [type] : [])),
      ['prompt.submitted', 'turn.started', ...steps, 'turn.ended', 'prompt.completed']
    )
  })
