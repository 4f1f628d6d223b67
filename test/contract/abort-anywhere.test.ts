/** An abort at every point of turns with every kind of step: the turn ends, told in order and as the records say, and the session goes on. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { type Frame, RestClient, startTestKernel } from '../../kernel/testing.ts'
import { busyModel } from '../helpers/busy-model.ts'
import { crashScene, type Said } from '../helpers/crash-scene.ts'
import { orderFaults } from '../helpers/event-order.ts'
import type { Step } from '../helpers/fake-upstream.ts'
import { png } from '../helpers/png.ts'
import { randomSource } from '../helpers/random.ts'
import { tellingJudge } from '../helpers/record-events.ts'

/** Moments per kind of turn, chosen by the seed. */
const perCase = Number(process.env.SVC_CODE_TEST_ABORTS ?? 3)
const seed = Number(process.env.SVC_CODE_TEST_SEED ?? Date.now() % 1_000_000)

interface Case {
  /** Of `busyModel`, or `retry`. */
  readonly script: string
  readonly mode?: 'manual' | 'yolo'
  /** Event at which the turn waits for something, or is held (`held`): an abort there is never too late. */
  readonly waits: string
  readonly media?: boolean
}

const cases: Readonly<Record<string, Case>> = {
  'streamed text': { script: 'talk', waits: 'turn.step.started' },
  'a running command': { script: 'detach', waits: 'tool.call.started' },
  'an open approval': { script: 'shell', mode: 'manual', waits: 'event.approval.requested' },
  'an open question': { script: 'ask', waits: 'event.question.requested' },
  'the review of a plan': { script: 'plan', waits: 'event.approval.requested' },
  'a subagent': { script: 'agent', waits: 'subagent.started' },
  'a swarm': { script: 'swarm', waits: 'subagent.started' },
  'a compaction before the window is full': { script: 'grow', waits: 'compaction.started' },
  'a compaction when it is full': { script: 'overflow', waits: 'compaction.started' },
  'the wait before a retry': { script: 'retry', waits: 'turn.step.retrying' },
  'a hook that looks at the prompt': { script: 'hooked', waits: 'prompt.submitted' },
  'a page of the web': { script: 'fetch', waits: 'turn.step.started' },
  'a prompt with a picture': { script: 'media', media: true, waits: 'turn.step.started' }
}

/** Answers of the model before it says nothing any more to a prompt that is to be aborted where the turn waits. */
const answersBefore: Readonly<Record<string, number>> = { talk: 0, hooked: 0, fetch: 0, media: 0, detach: 1, agent: 1, swarm: 1 }

/** What the model says while the abort of such a prompt is on its way, however long that takes; undefined: it goes on. */
function held(messages: readonly Said[]): readonly Step[] | undefined {
  const wished = /do:([a-z-]+):held/
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && JSON.stringify(content).includes('do:'))
  const script = wished.exec(JSON.stringify(messages[at]?.content ?? ''))?.[1]
  if (script === undefined) return undefined
  if (script === 'retry') return [{ status: 503, body: {}, headers: { 'retry-after': '600' } }]
  const answers = messages.slice(at).filter(({ role }) => role === 'assistant').length
  const isSummary = JSON.stringify(messages.at(-1)?.content).includes('replaced by a note that you write now')
  return isSummary || answers >= (answersBefore[script] ?? Number.POSITIVE_INFINITY) ? [{ hang: true }] : undefined
}

const hook = (event: string, command: string, matcher: string) =>
  `[[hooks]]\nevent = "${event}"\nmatcher = "${matcher}"\ncommand = '''${command}'''\n`
const picture = {
  type: 'image',
  source: { kind: 'base64', media_type: 'image/png', data: png(40, 40, { noise: true }).toString('base64') }
}

async function start(t: TestContext) {
  const scene = await crashScene(t, {
    // Slow enough that an abort finds the turn at work.
    model(messages: readonly Said[]) {
      const waits = held(messages)
      if (waits) return waits
      const wishes = [...JSON.stringify(messages).matchAll(/do:([a-z-]+):/g)]
      if (wishes.at(-1)?.[1] === 'retry') return [{ status: 503, body: {} }]
      const slow = { chunks: 4, every_ms: 15 }
      return busyModel(messages).map(step => ('text' in step ? { ...step, ...slow } : step))
    },
    tables: `[loop_control]\nmax_attempts_per_step = 3\n[services.svc_fetch]\nbase_url = "http://127.0.0.1:9/none"\n${hook('UserPromptSubmit', 'sleep 0.1', 'do:hooked')}${hook('PreToolUse', 'true', 'Read')}`
  })
  const server = await startTestKernel(t, {
    packs: await loadDefaultPacks(),
    home: scene.home,
    config: { agent: { retry_base_ms: 200 }, compaction: { retry_base_ms: 1 }, subagents: { swarm_spacing_ms: 1 } }
  })
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  const socket = await server.connect()
  socket.ws.setMaxListeners(0) // one per session
  return { ...scene, server, rest, socket }
}

interface Run {
  readonly frames: readonly Frame[]
  readonly id: string
  /** How the prompt ended. */
  readonly end: Frame
  /** How the next one did. */
  readonly next: Frame
  readonly refusals: readonly string[]
}

/** Aborts when this frame has come; undefined: never. `isHeld`: the model waits for that. */
async function run(
  { rest, socket, place }: Awaited<ReturnType<typeof start>>,
  { script, mode = 'yolo', media }: Case,
  at?: (frame: Frame, count: number) => boolean,
  isHeld = false
): Promise<Run> {
  const refusals: string[] = []
  // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
  const ask = async (path: string, body: object): Promise<any> => {
    const answer = await rest.json('POST', `/api/v1/sessions${path}`, body)
    // What was asked may have gone with the turn.
    if (![0, 40404, 40405, 40902].includes(answer.code)) refusals.push(`${path}: ${answer.code} ${answer.msg}`)
    return answer.data
  }
  const { id } = await ask('', { metadata: { cwd: place } })
  await socket.request('subscribe', { session_ids: [id] })
  const frames: Frame[] = []
  let aborted = false
  let abort: Promise<unknown> | undefined
  let count = 0
  const hear = () => {
    const frame = socket.frames.at(-1) // the client's own listener came first
    if (!frame || frame.session_id !== id) return
    frames.push(frame)
    const { type, payload } = frame
    if (!frame.volatile) count++
    if (!aborted && at?.(frame, count)) {
      aborted = true
      abort = ask(`/${id}:abort`, {})
    } else if (aborted) return
    else if (type === 'event.approval.requested') void ask(`/${id}/approvals/${payload.approval_id}`, { decision: 'approved' })
    else if (type === 'event.question.requested')
      void ask(`/${id}/questions/${payload.question_id}`, { answers: { q_0: { kind: 'single', option_id: 'opt_0_0' } } })
  }
  socket.ws.on('message', hear)
  const prompt = async (text: string, more: object = {}, parts: readonly object[] = []) => {
    const { prompt_id } = await ask(`/${id}/prompts`, { content: [{ type: 'text', text }, ...parts], ...more })
    return socket.next(({ type, payload }) => (type === 'prompt.completed' || type === 'prompt.aborted') && payload.promptId === prompt_id)
  }
  const end = await prompt(`do:${script}:${isHeld ? 'held' : 'x'}${serial++}`, { permission_mode: mode }, media ? [picture] : [])
  aborted = true
  await abort // else it may find the next prompt
  const next = await prompt(`do:talk:n${serial++}`)
  socket.ws.off('message', hear)
  return { frames, id, end, next, refusals }
}
let serial = 0

test('wherever a turn is aborted, it ends, in order and as recorded, the session takes the next prompt, and no process is left', {
  timeout: 180_000
}, async t => {
  t.diagnostic(`SVC_CODE_TEST_SEED=${seed}`)
  const scene = await start(t)
  const judge = await tellingJudge(t)
  const faults: string[] = []
  let aborts = 0
  const sweep = async ([name, given]: readonly [string, Case], index: number) => {
    const random = randomSource(seed + index)
    const whole = await run(scene, given)
    const before = whole.frames.slice(
      0,
      whole.frames.indexOf(
        whole.frames.find(({ type, payload }) => type === whole.end.type && payload.promptId === whole.end.payload.promptId)!
      ) + 1
    )
    const durable = before.filter(({ volatile }) => !volatile)
    const fluid = [...new Set(before.flatMap(({ type, volatile }) => (volatile && type !== 'agent.status.updated' ? [type] : [])))]
    if (!durable.some(({ type }) => type === given.waits)) faults.push(`${name}: ${given.waits} never comes`)
    type Point = readonly [what: string, fits: (frame: Frame, count: number) => boolean]
    // Before that there is no prompt.
    const from = durable.findIndex(({ type }) => type === 'prompt.submitted')
    const waiting = `${given.waits} (`
    const all: readonly Point[] = [
      ...durable
        .map(({ type }, n): Point => [`${type} (${n + 1})`, (_: Frame, count: number) => count === n + 1])
        .filter((_, n) => n >= from && durable.findIndex(({ type }) => type === durable[n]?.type) === n),
      ...fluid.map((type): Point => [type, (frame: Frame) => frame.type === type])
    ]
    // The moment at which it waits, and some of the others.
    const points = all
      .map(point => ({ point, rank: point[0].startsWith(waiting) ? -1 : random() }))
      .sort((one, other) => one.rank - other.rank)
      .slice(0, perCase)
      .map(({ point }) => point)
    const runs = await Promise.all(
      points.map(async ([what, fits]) => {
        return { what, ...(await run(scene, given, fits, what.startsWith(waiting))) }
      })
    )
    for (const { what, frames, id, end, next, refusals } of [...runs, { what: 'no abort', ...whole }]) {
      const complain = (text: string) => void faults.push(`${name}, ${what}: ${text}`)
      for (const text of [...refusals, ...orderFaults(frames), ...(await judge(scene.home, id))]) complain(text)
      const cut = end.type === 'prompt.aborted'
      if (cut) aborts++
      const ended = frames.find(({ type, payload }) => type === 'turn.ended' && payload.agentId === 'main')?.payload
      if (
        cut &&
        ended?.turnId === 0 &&
        frames.some(({ type, payload }) => type === 'turn.started' && payload.promptId === end.payload.promptId)
      ) {
        if (ended.reason !== 'cancelled' || ended.interruptReason !== 'user_cancelled')
          complain(`the turn ended as ${ended.reason} ${ended.interruptReason}`)
      }
      if (what.startsWith(waiting) && what === runs.find(each => each.what.startsWith(waiting))?.what && !cut)
        complain('the abort came to nothing')
      if (next.payload.reason !== 'completed') complain(`the next prompt ends with ${next.type} ${next.payload.reason}`)
    }
  }
  await Promise.all(Object.entries(cases).map(sweep))
  assert.deepEqual(faults, [], `seed ${seed}`)
  assert.deepEqual(scene.refusals, [], `what the model was sent; seed ${seed}`)
  t.diagnostic(`${aborts} turns were cut`)
  assert.deepEqual(await children(), [])
})

/** Commands that this process began and that still run. */
async function children(): Promise<string[]> {
  const found: string[] = []
  for (const pid of await readdir('/proc').catch(() => [])) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    const [, , parent] = stat.slice(stat.lastIndexOf(')')).split(' ')
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (Number(parent) === process.pid && /effects|sleep/.test(line)) found.push(line.replaceAll('\0', ' '))
  }
  return found
}
