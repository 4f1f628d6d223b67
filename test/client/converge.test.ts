/** Clients that are disturbed at random moments of scripted sessions at two servers of one home have in the end what an undisturbed one has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { conversationOf } from '../../examples/client/conversation.ts'
import type { TranscriptPage } from '../../features/transcript/index.ts'
import { RestClient, type TestKernel } from '../../kernel/testing.ts'
import { kernels, newSession, until } from '../features/peers/kernels.ts'
import { common, type View } from '../features/transcript/client.ts'
import { serve } from '../helpers/cli.ts'
import type { Step } from '../helpers/fake-upstream.ts'
import { randomSource } from '../helpers/random.ts'
import { type Fleet, Roamer } from './roamer.ts'

const schedules = Number(process.env.SVC_CODE_TEST_SCHEDULES ?? 504)
const seed = Number(process.env.SVC_CODE_TEST_SEED ?? Date.now() % 1_000_000)
const perSession = 126
const prompts = 2
/** So soon after the end everybody has everything, ms. */
const patienceMs = 10_000
/** What agents that the main one starts are asked to do. */
const part = 'A part of the work:'
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** What the model says, by the random source of the run. */
function model(random: () => number): (body: Record<string, unknown>) => readonly Step[] {
  let calls = 0
  const pick = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
  const words = () => pick(['one', 'two words', 'a longer answer of many words that comes in pieces 🙂 '.repeat(4)])
  const said = (): readonly Step[] => [{ text: words(), chunks: 4, every_ms: 2 }]
  const call = (name: string, args: object) => ({ name, id: `c${calls++}`, args })
  const todo = () => call('TodoList', { todos: [{ title: words(), status: pick(['pending', 'done']) }] })
  const write = () => call('Write', { path: `file-${Math.floor(random() * 9)}.txt`, content: words() })
  const options = [{ label: 'Left' }, { label: 'Right' }]
  const question = () => call('AskUserQuestion', { questions: [{ question: `Which way, ${calls}?`, options }] })
  const agent = () => call('Agent', { prompt: `${part} ${words()}`, description: 'a part' })
  const replies: (() => readonly Step[])[] = [
    said,
    () => [{ thinking: 'Let me see.', chunks: 3, every_ms: 2 }, ...said()],
    said,
    () => [...said(), { tools: [todo()] }],
    () => [{ tools: [todo(), write()] }],
    () => [...said(), { tools: [question()] }],
    () => [{ tools: [agent()] }],
    () => [{ text: 'lost words', chunks: 2, every_ms: 30 }, { cut: true }],
    () => [{ status: 503, headers: { 'retry-after': '0' } }]
  ]
  const ofParts = [said, said, () => [...said(), { tools: [pick([write, todo])()] }]]
  return ({ messages }) => {
    const isPart = (messages as { role: string; content: unknown }[]).some(
      ({ role, content }) => role === 'user' && JSON.stringify(content).includes(part)
    )
    return pick(isPart ? ofParts : replies)()
  }
}

interface Server {
  readonly url: string
  readonly rest: RestClient
  /** Is told to stop, or dies. */
  end(): Promise<unknown>
}

test(`${schedules} disturbed clients of two servers agree with an undisturbed one (seed ${seed})`, async t => {
  const random = randomSource(seed)
  const chance = (share: number) => random() < share
  const pick = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
  const { servers: started, home, cwd, more } = await kernels(t, model(random), 1)
  const inProcess = ({ url, rest, stop }: TestKernel): Server => ({ url, rest, end: stop })
  const asProcess = async (): Promise<Server> => {
    const { url, token, child, ended } = await serve(t, home, '--port', '0')
    const rest = new RestClient(url, token)
    t.after(() => rest.close())
    const end = async () => {
      child.kill(chance(0.7) ? 'SIGKILL' : 'SIGTERM')
      await ended
    }
    return { url, rest, end }
  }
  // One in this process, where all that it says is held against its documents, and one that can be killed.
  const servers: (Server | undefined)[] = [inProcess(started[0]!), await asProcess()]
  const live = () => servers.filter(server => server !== undefined)
  const fleet: Fleet = { token: started[0]!.token, urls: () => live().map(({ url }) => url) }

  for (let left = schedules; left > 0; left -= perSession) {
    const id = await newSession(pick(live()), cwd)
    // The server of the undisturbed client stays; the other one ends under load, most often by `kill -9`.
    const steadyAt = chance(0.75) ? 0 : 1
    const steady = new Roamer({ token: fleet.token, urls: () => [servers[steadyAt]!.url] }, id, random)
    t.after(() => steady.close())
    const roamers: Roamer[] = []
    const add = () => {
      const roamer = new Roamer(fleet, id, random)
      roamers.push(roamer)
      t.after(() => roamer.close())
    }
    while (roamers.length < Math.min(left, perSession) / 2) add()

    const restart = Math.floor(random() * prompts)
    const ask = async (path: string, body?: unknown) => await pick(live()).rest.json('POST', `/api/v1/sessions/${id}${path}`, body)
    const busy = async () => {
      const { code, msg, data } = await servers[steadyAt]!.rest.json('GET', `/api/v1/sessions/${id}`)
      assert.equal(code, 0, msg)
      return (data as { busy: boolean }).busy
    }
    const answer = (id: string) => ask(`/questions/${id}`, { answers: { q_0: { kind: 'single', option_id: 'opt_0_0' } } })
    let steered = -1
    for (let n = 0; n < prompts; n++) {
      const permission_mode = pick(['yolo', 'manual'])
      const sent = await ask('/prompts', { content: [{ type: 'text', text: `prompt ${n}` }], permission_mode })
      assert.equal(sent.code, 0, sent.msg)
      if (chance(0.3)) await ask('/profile', { title: `title ${n}` })
      let replaced: Promise<void> | undefined
      if (n === restart) {
        const old = servers[1 - steadyAt]!
        servers[1 - steadyAt] = undefined
        replaced = old
          .end()
          .then(async () => (steadyAt === 0 ? await asProcess() : inProcess(await more())))
          .then(server => {
            servers[1 - steadyAt] = server
          })
      }
      do {
        for (const roamer of roamers) {
          if (!chance(0.06)) continue
          pick([
            () => roamer.cut(),
            () => roamer.cut(),
            () => roamer.halt(),
            () => roamer.goOn(),
            () => roamer.leave(),
            () => roamer.comeBack(),
            () => roamer.comeBack(),
            () => void roamer.catchUp()
          ])()
        }
        if (roamers.length < Math.min(left, perSession) && chance(0.5)) add()
        if (chance(0.02)) await ask(':abort')
        const { approvals: [approval] = [], questions: [question] = [] } = steady.conversation ?? {}
        if (approval !== undefined && chance(0.5)) await ask(`/approvals/${approval}`, { decision: pick(['approved', 'rejected']) })
        if (question !== undefined && chance(0.5)) await pick([() => answer(question), () => ask(`/questions/${question}:dismiss`)])()
        if (steered < n && chance(0.05)) {
          steered++
          const { code, data } = await ask('/prompts', { content: [{ type: 'text', text: `besides ${n}` }] })
          if (code === 0) await ask(`/prompts/${(data as { prompt_id: string }).prompt_id}:steer`)
        }
        await pause(4)
      } while (await busy())
      await replaced
      if (chance(0.3)) await ask(':undo', {}) // refused when a turn has begun meanwhile
    }
    while (roamers.length < Math.min(left, perSession)) add()
    for (const roamer of roamers) {
      roamer.comeBack()
      roamer.goOn()
    }

    // A turn that a server left is taken over a moment later.
    const rest = async () => {
      const { as_of_seq } = await steady.snapshot()
      await pause(100)
      const snapshot = await steady.snapshot()
      return { snapshot, isOver: !snapshot.session.busy && snapshot.as_of_seq === as_of_seq }
    }
    const { snapshot: truth } = await until(rest, ({ isOver }) => isOver)
    const page = async (agent_id: string) => {
      const path = `/api/v1/sessions/${id}/transcript?agent_id=${agent_id}&page_size=100`
      return (await servers[steadyAt]!.rest.json('GET', path)).data as TranscriptPage
    }
    const agents = (await page('main')).agents.map(({ agentId }) => agentId)
    const pages = new Map<string, TranscriptPage>()
    for (const agent of agents) pages.set(agent, await page(agent))
    const transcripts = (of: (agent: string) => View | undefined) => agents.map(agent => common(of(agent) ?? pages.get(agent)!))
    const expected = { events: conversationOf(truth), transcripts: transcripts(agent => pages.get(agent)) }
    for (const [name, one] of [['the undisturbed one', steady] as const, ...roamers.map((roamer, n) => [`client ${n}`, roamer] as const)]) {
      const seen = () => ({
        events: one.conversation,
        transcripts: transcripts(agent => one.transcript.view(agent) as View | undefined)
      })
      for (const end = Date.now() + patienceMs; !isDeepStrictEqual(seen(), expected) && Date.now() < end; ) await pause(5)
      assert.deepEqual(seen(), expected, `${name} of ${id}: at ${one.seq} of ${truth.as_of_seq}`)
      one.close()
    }
  }
})
