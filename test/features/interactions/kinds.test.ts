/** A pack adds a kind of request of its own: questions, with routes, codes and events that the broker knows nothing of. */
import assert from 'node:assert/strict'
import { appendFile } from 'node:fs/promises'
import { test } from 'node:test'
import config from '../../../features/config/pack.ts'
import { HistoryStates } from '../../../features/history/index.ts'
import {
  AlreadyResolved,
  ApprovalMissing,
  approvalRequested,
  approvalResolved,
  approvals,
  defineInteraction,
  type InteractionAsk,
  InteractionKinds,
  Interactions,
  NotResolved,
  resolveApproval
} from '../../../features/interactions/index.ts'
import interactions from '../../../features/interactions/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import permissions from '../../../features/permissions/pack.ts'
import { abortSession, submitPrompt } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { readSession, SessionBusy, Sessions } from '../../../features/sessions/index.ts'
import { type Tool, type ToolOutcome, ToolRunner, Tools } from '../../../features/tools/index.ts'
import toolsPack from '../../../features/tools/pack.ts'
import { checker, defineEvent, definePack, defineRoute, errorSpec, invalid, type Static, Type } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, insider, type Started, type StartOptions, startAgent, wireFile, wireOf } from '../agent/start.ts'
import { scripted } from '../tools/fakes.ts'

const QuestionMissing = errorSpec('question_missing', 40405, 'question not found')
const QuestionExpired = errorSpec('question_expired', 41099, 'the question timed out', 200, NotResolved)
const Question = Type.Object({ question_id: Type.String(), session_id: Type.String(), text: Type.String(), created_at: Type.String() })
const Answer = Type.Union([Type.Object({ text: Type.String() }), Type.Object({ dismissed: Type.Literal(true) })])
const durable = { scope: 'session', durable: true } as const
const asked = defineEvent({ type: 'event.question.requested', ...durable, payload: Question })
const Ended = Type.Object({ question_id: Type.String(), text: Type.Optional(Type.String()) })
const answered = defineEvent({ type: 'event.question.answered', ...durable, payload: Ended })
const dismissed = defineEvent({ type: 'event.question.dismissed', ...durable, payload: Ended })

const questions = defineInteraction({
  name: 'question',
  pending: 'question',
  request: Question,
  answer: Answer,
  missing: QuestionMissing,
  expired: QuestionExpired,
  describe: ({ text }: InteractionAsk & { readonly text: string }, { id: question_id, session_id, created_at }) => ({
    question_id,
    session_id,
    text,
    created_at
  }),
  asked: request => ({ type: asked.type, payload: request }),
  ended: (question_id, end) =>
    end.how === 'answered' && 'text' in end.answer
      ? { type: answered.type, payload: { question_id, text: end.answer.text } }
      : { type: dismissed.type, payload: { question_id } }
})

const path = '/api/v1/sessions/{session_id}/questions'
const params = Type.Object({ session_id: Type.String() })
const listQuestions = defineRoute({ method: 'GET', path, summary: 'list', params, data: Type.Object({ items: Type.Array(Question) }) })
const answerQuestion = defineRoute({
  method: 'POST',
  path: `${path}/{question_id}`,
  summary: 'answer',
  params: Type.Object({ session_id: Type.String(), question_id: Type.String() }),
  body: Type.Unknown(),
  data: Type.Object({ resolved_at: Type.String() }),
  errors: [QuestionMissing, QuestionExpired, AlreadyResolved, SessionBusy]
})

/** The tool `Ask` waits for the answer. */
const questionPack = (ttl_ms?: number) =>
  definePack({
    name: 'questions',
    needs: { interactions: Interactions, sessions: Sessions },
    setup(ctx, { interactions, sessions }) {
      const emits = { [asked.type]: ctx.event(asked), [answered.type]: ctx.event(answered), [dismissed.type]: ctx.event(dismissed) }
      ctx.contribute(InteractionKinds, {
        kind: questions,
        ...(ttl_ms === undefined ? {} : { ttl_ms }),
        tell: ({ type, payload }, target) => emits[type]?.(payload as Static<typeof Question>, target)
      })
      ctx.route(listQuestions, async ({ params: { session_id } }) => ({
        items: [...interactions.pending(await sessions.load(session_id), questions)]
      }))
      // First which question, then whether the answer fits it (contract 2, Approvals and questions).
      ctx.route(answerQuestion, async ({ params: { session_id, question_id }, body }) => {
        const session = await sessions.load(session_id)
        const { text } = interactions.find(session, questions, question_id)
        if (!checker(Answer).Check(body)) throw invalid([{ path: 'body', message: `no answer to: ${text}` }])
        return { resolved_at: await interactions.answer(session, questions, question_id, body) }
      })
    }
  })

/** In a pack of its own, so that calls outlive the kind. */
const tools = definePack({
  name: 'tools',
  needs: { interactions: Interactions },
  provides: [ToolRunner],
  setup(ctx, { interactions }) {
    ctx.provide(ToolRunner, {
      list: () => [{ name: 'Ask', description: 'ask', parameters: {} }],
      async run({ agent, turn_id, calls, signal, report }) {
        const outcomes: ToolOutcome[] = []
        for (const call of calls) {
          await report({ type: 'started', call, args: {} })
          const end = await interactions.ask(questions, { agent, turn_id, text: 'which one?' }, signal)
          outcomes.push({ call, result: { output: JSON.stringify(end) } })
        }
        return outcomes
      }
    })
  }
})

async function start(t: Parameters<typeof startAgent>[0], options: StartOptions & { readonly ttl_ms?: number } = {}) {
  const llm = scriptedLlm(toolCalls({ id: 'c1', name: 'Ask' }), 'thanks')
  const server = await startAgent(t, llm, {
    ...options,
    packs: [interactions, questionPack(options.ttl_ms), tools, ...(options.packs ?? [])]
  })
  return { ...server, llm, params: { session_id: server.session_id } }
}

const toolPack = (...tools: readonly Tool[]) =>
  definePack({ name: 'some-tools', setup: ctx => tools.forEach(tool => void ctx.contribute(Tools, tool)) })

/** Does something as soon as a record of this type is taken, before it is on disk. */
const onRecord = (type: string, act: () => void) =>
  definePack({
    name: 'watcher',
    setup(ctx) {
      const reduce = (value: null, record: { readonly type: string }) => {
        if (record.type === type) act()
        return value
      }
      ctx.contribute(HistoryStates, { name: 'watcher', version: 1, initial: () => null, reduce })
    }
  })

async function askedOf(server: Started): Promise<string> {
  const { payload } = await server.waitFor(event => event.type === asked.type)
  return (payload as Static<typeof Question>).question_id
}

const seen = (server: Started) =>
  server.events.flatMap(({ type, payload }) => {
    const { pending_interaction: pending } = payload as { readonly pending_interaction?: string }
    if (type === 'event.session.work_changed') return [`work ${pending}`]
    return type.startsWith('event.question.') ? [type.replace('event.', '')] : []
  })

test('a question of another pack is announced, listed, shown in session and snapshot, and its answer goes back to the tool', async t => {
  const server = await start(t)
  const { params } = server
  await server.prompt('choose')
  const question_id = await askedOf(server)

  assert.match(question_id, /^question_[0-9a-f-]{36}$/)
  const [item] = (await server.call(listQuestions, { params })).data.items
  assert.equal(item?.text, 'which one?')
  assert.equal((await server.call(readSession, { params })).data.pending_interaction, 'question')
  const snapshot = (await server.call(readSnapshot, { params })).data
  assert.deepEqual([snapshot.pending_questions, snapshot.pending_approvals], [[item], []])
  const bad = await server.call(answerQuestion, { params: { ...params, question_id }, body: { text: 5 } })
  assert.deepEqual([bad.code, bad.details], [40001, [{ path: 'body', message: 'no answer to: which one?' }]])
  const reply = await server.call(answerQuestion, { params: { ...params, question_id }, body: { text: 'the left one' } })
  await server.settled(1)

  assert.equal(reply.code, 0)
  const told = seen(server).slice(seen(server).indexOf('work question'))
  assert.deepEqual(told.slice(0, 4), ['work question', 'question.requested', 'work none', 'question.answered'])
  const { items } = (await server.call(listMessages, { params })).data
  const result = items.find(message => message.role === 'tool')?.content[0] as { readonly output?: string } | undefined
  assert.equal(result?.output, JSON.stringify({ how: 'answered', answer: { text: 'the left one' } }))
  const again = await server.call(answerQuestion, { params: { ...params, question_id }, body: { text: 'no, the right one' } })
  assert.deepEqual([again.code, again.data], [AlreadyResolved.code, { resolved: false }])
  const other = await server.call(answerQuestion, { params: { ...params, question_id: 'question_x' }, body: 5 })
  assert.equal(other.code, QuestionMissing.code)
})

test('one kind has several ends of its own', async t => {
  const server = await start(t)
  await server.prompt('choose')
  const question_id = await askedOf(server)
  await server.call(answerQuestion, { params: { ...server.params, question_id }, body: { dismissed: true } })
  await server.settled(1)
  assert.equal(seen(server).at(-2), 'question.dismissed')
})

test('the end of the turn withdraws the question', async t => {
  const server = await start(t)
  await server.prompt('choose')
  const question_id = await askedOf(server)

  await server.call(abortSession, { params: server.params })

  assert.deepEqual((await server.call(listQuestions, { params: server.params })).data.items, [])
  await server.waitFor(event => event.type === dismissed.type)
  const late = await server.call(answerQuestion, { params: { ...server.params, question_id }, body: { text: 'late' } })
  assert.equal(late.code, AlreadyResolved.code)
})

test('an abort while the request is recorded: clients hear of the request and of its end, as they would from the records', async t => {
  const inside = insider()
  let abort: (() => void) | undefined
  const server = await start(t, {
    packs: [inside.pack, onRecord('interaction.request', () => abort?.())]
  })
  const main = await inside.main(server)
  abort = () => void main.abort(true)

  await server.prompt('choose')
  await server.waitFor(event => event.type === 'prompt.aborted')

  assert.deepEqual(
    seen(server).filter(what => what !== 'work none'),
    ['work question', 'question.requested', 'question.dismissed']
  )
  assert.equal(seen(server).at(-1), 'work none')
  assert.deepEqual((await server.call(listQuestions, { params: server.params })).data.items, [])
  assert.deepEqual(
    (await wireOf(server)).flatMap(({ type, how }) => (type.startsWith('interaction.') ? [`${type} ${how ?? ''}`] : [])),
    ['interaction.request ', 'interaction.resolved withdrawn']
  )
})

test('a kind expires when its pack says so', async t => {
  const hold = setInterval(() => undefined, 1_000) // the expiry timer alone does not keep the process alive
  t.after(() => clearInterval(hold))
  const server = await start(t, { ttl_ms: 5 })
  await server.prompt('choose')
  const question_id = await askedOf(server)
  await server.settled(1)
  const late = await server.call(answerQuestion, { params: { ...server.params, question_id }, body: { text: 'late' } })
  assert.deepEqual([late.code, late.data], [QuestionExpired.code, { resolved: false }])
})

test('a question that a killed server left open is dismissed when its session is loaded', async t => {
  const first = await start(t)
  await first.prompt('choose')
  const question_id = await askedOf(first)
  await first.call(readSnapshot, { params: first.params }) // answers when all events are on disk

  const server = await start(t, { home: await copyOfHome(first.home), session_id: first.session_id })
  assert.deepEqual((await server.call(listQuestions, { params: server.params })).data.items, [])

  assert.deepEqual(
    server.events.filter(({ type }) => type.startsWith('event.question.')).map(({ type, payload }) => [type, payload]),
    [[dismissed.type, { question_id }]]
  )
})

test('the model is told that no call ran when a killed server was still asking about one, and that they may have run when it was not', async t => {
  for (const hasMode of [false, true]) {
    const latched = latch()
    t.after(() => latched.open())
    const open = scripted({ name: 'Open', run: () => latched.opened.then(() => ({ output: 'late' })) })
    const calls = toolCalls({ id: 'c1', name: 'Open' }, { id: 'c2', name: 'Write' })
    const packs = [config, toolsPack, permissions, interactions, toolPack(open, scripted({ name: 'Write' }))]
    const first = await startAgent(t, scriptedLlm(calls), { packs })
    await first.call(submitPrompt, {
      params: { session_id: first.session_id },
      body: { content: [{ type: 'text', text: 'go' }], permission_mode: hasMode ? 'yolo' : 'manual' }
    })
    await first.waitFor(({ type }) => type === (hasMode ? 'tool.result' : 'event.approval.requested'))
    await first.call(readSnapshot, { params: { session_id: first.session_id } }) // answers when all events are on disk

    const llm = scriptedLlm('on')
    const home = await copyOfHome(first.home)
    const server = await startAgent(t, llm, { home, session_id: first.session_id, packs })
    await server.prompt('go on')
    await server.waitFor(({ type }) => type === 'prompt.completed')

    const results = JSON.stringify(llm.requests[0]?.messages.filter(({ role }) => role === 'tool'))
    assert.deepEqual([/had no effect/.test(results), /may or may not have had an effect/.test(results)], [!hasMode, hasMode], results)
    await server.stop()
    latched.open()
    await first.stop()
  }
})

test('when the pack of the kind leaves, its open questions are withdrawn and the turn goes on', async t => {
  const server = await start(t)
  await server.prompt('choose')
  await askedOf(server)

  await server.kernel.unload('questions')
  await server.settled(1)

  assert.equal((await server.call(readSession, { params: server.params })).data.pending_interaction, 'none')
  const ends = (await wireOf(server)).filter(record => record.type === 'interaction.resolved')
  assert.deepEqual(
    ends.map(({ kind, how }) => [kind, how]),
    [['question', 'withdrawn']]
  )
})

test('when the pack of the kind is swapped, clients hear that its open question is over before the result of the call', async t => {
  const server = await start(t)
  await server.prompt('choose')
  await askedOf(server)

  await server.kernel.reload('questions')
  await server.settled(1)

  const types = server.events.map(({ type }) => type).filter(type => type === 'tool.result' || type.startsWith('event.question.'))
  assert.deepEqual(types, [asked.type, dismissed.type, 'tool.result'])
})

test('the id of a question is unknown among approvals', async t => {
  const server = await start(t)
  await server.prompt('choose')
  const approval_id = await askedOf(server)
  const reply = await server.call(resolveApproval, { params: { ...server.params, approval_id }, body: { decision: 'approved' } })
  assert.equal(reply.code, ApprovalMissing.code)
})

test('a server that does not own the session takes no answer', async t => {
  const owner = await start(t)
  await owner.prompt('choose')
  const question_id = await askedOf(owner)
  const other = await start(t, { home: owner.home, session_id: owner.session_id })
  const reply = await other.call(answerQuestion, { params: { ...owner.params, question_id }, body: { text: 'the left one' } })
  assert.equal(reply.code, SessionBusy.code)
  assert.equal((await owner.call(listQuestions, { params: owner.params })).data.items.length, 1)
  const approved = await other.call(resolveApproval, { params: { ...owner.params, approval_id: 'x' }, body: { decision: 'approved' } })
  assert.equal(approved.code, SessionBusy.code)
})

test('recovery ends what a dead process left, and nothing that somebody waits for', async t => {
  let recover = async (_session_id: string): Promise<unknown> => undefined
  const spy = definePack({
    name: 'spy',
    needs: { interactions: Interactions, sessions: Sessions },
    setup(_ctx, { interactions, sessions }) {
      recover = async session_id => interactions.recover(await (await sessions.load(session_id)).main())
    }
  })
  const server = await start(t, { packs: [spy] })
  await server.prompt('choose')
  await askedOf(server)
  await recover(server.session_id)
  assert.equal((await server.call(listQuestions, { params: server.params })).data.items.length, 1)
  assert.deepEqual(
    (await wireOf(server)).filter(record => record.type === 'interaction.resolved'),
    []
  )
})

test('when the broker leaves, open approvals are told to be cancelled', async t => {
  const asking = definePack({
    name: 'tools',
    optional: { interactions: Interactions },
    provides: [ToolRunner],
    setup(ctx, { interactions }) {
      ctx.provide(ToolRunner, {
        list: () => [],
        async run({ agent, turn_id, calls: [call], signal, report }) {
          if (!call) return []
          await report({ type: 'started', call, args: {} })
          const ask = { agent, turn_id, tool_call_id: call.id, tool_name: call.name, action: 'Going', display: { kind: 'generic' } }
          return [{ call, result: { output: JSON.stringify(await interactions()?.ask(approvals, ask, signal)) } }]
        }
      })
    }
  })
  const llm = scriptedLlm(toolCalls({ id: 'c1', name: 'Go' }), 'ok')
  const server = await startAgent(t, llm, { packs: [interactions, asking] })
  await server.prompt('go')
  const { payload } = await server.waitFor(event => event.type === approvalRequested.type)

  await server.kernel.unload('interactions')
  await server.settled(1)

  const told = server.events.find(event => event.type === approvalResolved.type)?.payload as Static<typeof approvalResolved.payload>
  assert.deepEqual([told?.approval_id, told?.decision], [(payload as { approval_id: string }).approval_id, 'cancelled'])
})

test('an approval that was left open in a journal of an older shape is cancelled when its session is loaded', async t => {
  const first = await startAgent(t, scriptedLlm('hello'), { packs: [interactions] })
  await first.prompt('hello')
  await first.settled(1)
  await first.stop()
  const approval_id = 'approval_old'
  const record = { type: 'interaction.request', kind: 'approval', request: { approval_id, tool_name: 'Bash' }, time: Date.now() }
  await appendFile(await wireFile(first), `${JSON.stringify(record)}\n`)

  const { home, session_id } = first
  const server = await startAgent(t, scriptedLlm('never asked'), { home, session_id, packs: [interactions] })
  await server.call(readSnapshot, { params: { session_id } })

  const told = server.events.filter(({ type }) => type === approvalResolved.type).map(({ payload }) => payload as Record<string, unknown>)
  assert.deepEqual(
    told.map(payload => [payload.approval_id, payload.decision]),
    [[approval_id, 'cancelled']]
  )
})
