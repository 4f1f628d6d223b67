/** Every tool, every mode and every decision, over the real API with a scripted provider: what comes of it, and in which order it is told. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { type Frame, startTestKernel, type TestKernelOptions } from '../../kernel/testing.ts'
import type { Said } from '../helpers/crash-scene.ts'
import { orderFaults } from '../helpers/event-order.ts'
import { fakeUpstream, type Step } from '../helpers/fake-upstream.ts'
import { modelConfig } from '../helpers/model-config.ts'
import { png } from '../helpers/png.ts'
import { freshDir } from '../helpers/temp.ts'

/** A call; `{{plan}}`, `{{task}}`, `{{cron}}` in its arguments are what the model was told last. */
type Call = readonly [name: string, args?: Record<string, unknown>]
interface Row {
  /** What the profile is set to, or what the prompt brings. */
  readonly agent?: Record<string, unknown>
  readonly permission_mode?: 'manual' | 'yolo' | 'auto'
  /** Calls per response; after the last one the model talks. */
  readonly steps: readonly (readonly Call[])[]
  /** The answers to approvals, one after the other; the last one repeats. Undefined: nobody answers. */
  readonly approvals?: readonly (Record<string, unknown> | undefined)[]
  readonly questions?: 'answer' | 'dismiss'
  /** How the prompt ends; default: completed. */
  readonly ends?: 'completed' | 'failed' | 'aborted'
  /** What the results say, in order of the calls; absent ones do not matter. */
  readonly results: readonly (RegExp | undefined)[]
  /** Number of approvals. */
  readonly asked?: number
  /** Aborts the session when a request is open. */
  readonly abort?: boolean
}

const yes = { decision: 'approved' }
const bash = (command = 'echo hello', more = {}): Call => ['Bash', { command, ...more }]
const back = (command: string) => bash(command, { run_in_background: true, description: 'in the background' })
const question = { questions: [{ question: 'Which?', options: [{ label: 'Left' }, { label: 'Right' }] }] }
const child = { prompt: 'a part of the work', description: 'a part' }
const plan: readonly (readonly Call[])[] = [[['EnterPlanMode']], [['Write', { path: '{{plan}}', content: 'the plan' }]]]
const review = (approvals: Row['approvals'], last: RegExp, more: Partial<Row> = {}): Row => ({
  permission_mode: 'yolo',
  steps: [
    ...plan,
    [
      [
        'ExitPlanMode',
        {
          options: [
            { label: 'A', description: 'a' },
            { label: 'B', description: 'b' }
          ]
        }
      ]
    ]
  ],
  approvals: approvals ?? [],
  results: [/Plan mode is on/, /Wrote|wrote|bytes/, last],
  asked: 1,
  ...more
})

const rows: Readonly<Record<string, Row>> = {
  'reading and searching asks nobody': {
    permission_mode: 'manual',
    steps: [
      [
        ['Read', { path: 'notes.txt' }],
        ['Glob', { pattern: '*.txt' }],
        ['Grep', { pattern: 'needle' }],
        ['ReadMediaFile', { path: 'a.png' }]
      ]
    ],
    results: [/needle/, /notes\.txt/, /notes\.txt/, undefined],
    asked: 0
  },
  'a file is written and changed in yolo mode': {
    permission_mode: 'yolo',
    steps: [
      [['Write', { path: 'yolo.txt', content: 'one' }]],
      [['Read', { path: 'yolo.txt' }]],
      [['Edit', { path: 'yolo.txt', old_string: 'one', new_string: 'two' }]]
    ],
    results: [undefined, /one/, undefined],
    asked: 0
  },
  'a file is written with consent': {
    permission_mode: 'manual',
    steps: [[['Write', { path: 'manual.txt', content: 'one' }]]],
    approvals: [yes],
    results: [undefined],
    asked: 1
  },
  'a command runs with consent, the next one asks again': {
    permission_mode: 'manual',
    steps: [[bash()], [bash()]],
    approvals: [yes],
    results: [/hello/, /hello/],
    asked: 2
  },
  'a command that is allowed for the session asks once': {
    permission_mode: 'manual',
    steps: [[bash()], [bash()]],
    approvals: [{ decision: 'approved', scope: 'session' }],
    results: [/hello/, /hello/],
    asked: 1
  },
  'a rejection with feedback reaches the model, and the turn goes on': {
    permission_mode: 'manual',
    steps: [[bash()]],
    approvals: [{ decision: 'rejected', feedback: 'use another one' }],
    results: [/use another one/],
    asked: 1
  },
  'a cancelled approval': {
    permission_mode: 'manual',
    steps: [[bash()]],
    approvals: [{ decision: 'cancelled' }],
    results: [/cancel/i],
    asked: 1
  },
  'two calls of a response are asked for one after the other': {
    permission_mode: 'manual',
    steps: [[bash('echo a'), bash('echo b')]],
    approvals: [yes, { decision: 'rejected' }],
    results: [/a/, undefined],
    asked: 2
  },
  'an abort while an approval is open': {
    permission_mode: 'manual',
    steps: [[bash()]],
    approvals: [undefined],
    results: [],
    asked: 1,
    abort: true,
    ends: 'aborted'
  },
  'auto mode asks nobody, and the model cannot ask': {
    permission_mode: 'auto',
    steps: [[bash()], [['AskUserQuestion', question]]],
    results: [/hello/, /auto/i],
    asked: 0
  },
  'a question is answered': {
    permission_mode: 'yolo',
    steps: [[['AskUserQuestion', question]]],
    questions: 'answer',
    results: [/"Which\?":"Left"/]
  },
  'a question is dismissed': {
    permission_mode: 'yolo',
    steps: [[['AskUserQuestion', question]]],
    questions: 'dismiss',
    results: [/answers/]
  },
  'a question in the background': {
    permission_mode: 'yolo',
    steps: [[['AskUserQuestion', { ...question, background: true }]], [['WaitFor', { timeout: 20 }]]],
    questions: 'answer',
    // The answer may have come before, as a message.
    results: [/question-/, /Left|nothing to wait for/]
  },
  'an abort while a question is open': {
    permission_mode: 'yolo',
    steps: [[['AskUserQuestion', question]]],
    results: [],
    abort: true,
    ends: 'aborted'
  },
  'the list of things to do': {
    permission_mode: 'manual',
    steps: [[['TodoList', { todos: [{ title: 'one', status: 'pending' }] }]], [['TodoList']]],
    results: [/one/, /one/],
    asked: 0
  },
  'a command in the background is listed, read and stopped': {
    permission_mode: 'yolo',
    steps: [
      [back('echo said; sleep 30')],
      [['TaskList']],
      [['TaskOutput', { task_id: '{{task}}' }]],
      [['TaskStop', { task_id: '{{task}}' }]]
    ],
    results: [/task_id: bash-/, /bash-/, /running/, /stopped|killed/i]
  },
  'a command in the background is waited for': {
    permission_mode: 'yolo',
    steps: [[back('echo said')], [['WaitFor', { timeout: 20, task_id: '{{task}}' }]]],
    results: [/task_id: bash-/, /completed/]
  },
  'a subagent works, and its calls are told as its own': {
    permission_mode: 'yolo',
    steps: [[['Agent', child]]],
    results: [/status: completed/]
  },
  'a subagent in the background is waited for': {
    permission_mode: 'yolo',
    steps: [[['Agent', { ...child, run_in_background: true }]], [['WaitFor', { timeout: 20 }]]],
    results: [/agent-/, /completed/]
  },
  'a subagent asks for consent': {
    permission_mode: 'manual',
    steps: [[['Agent', child]]],
    approvals: [yes],
    results: [/status: completed/],
    asked: 1
  },
  'swarm mode': {
    agent: { swarm_mode: true },
    permission_mode: 'yolo',
    steps: [[['AgentSwarm', { description: 'parts', prompt_template: 'part {{item}}', items: ['x', 'y'] }]]],
    results: [/x[\s\S]*y/]
  },
  'plan mode: approved': review([yes], /approved the plan/),
  'plan mode: one of the options': review([{ decision: 'approved', selected_label: 'B' }], /only this one: B/),
  'plan mode: revise': review([{ decision: 'rejected', selected_label: 'Revise', feedback: 'shorter' }], /shorter/),
  'plan mode: reject and exit': review([{ decision: 'rejected', selected_label: 'Reject and Exit' }], /ended plan mode/),
  'plan mode: dismissed': review([{ decision: 'cancelled' }], /dismissed/),
  'plan mode: aborted while the review is open': review([undefined], /./, { results: [], abort: true, ends: 'aborted' }),
  'plan mode holds changes back': {
    agent: { plan_mode: true },
    permission_mode: 'yolo',
    steps: [[['Write', { path: 'held.txt', content: 'x' }]]],
    results: [/plan/i],
    asked: 0
  },
  'a goal of the model, with a budget, until it is complete': {
    permission_mode: 'yolo',
    steps: [
      [['CreateGoal', { objective: 'all done' }]],
      [['GetGoal']],
      [['SetGoalBudget', { value: 5, unit: 'turns' }]],
      [['UpdateGoal', { status: 'complete', reason: 'seen' }]]
    ],
    approvals: [{ decision: 'approved', selected_label: 'yolo' }],
    results: [/all done|goal/i, /all done/, /5/, undefined],
    asked: 1
  },
  'a goal that the user declines': {
    permission_mode: 'manual',
    steps: [[['CreateGoal', { objective: 'no' }]]],
    approvals: [{ decision: 'rejected' }],
    results: [/declined/],
    asked: 1
  },
  'a goal of the user': {
    agent: { goal_objective: 'theirs' },
    permission_mode: 'yolo',
    steps: [[['GetGoal']], [['UpdateGoal', { status: 'complete', reason: 'seen' }]]],
    results: [/theirs/, undefined]
  },
  'scheduled prompts': {
    permission_mode: 'yolo',
    steps: [[['CronCreate', { cron: '0 0 1 1 *', prompt: 'happy new year' }]], [['CronList']], [['CronDelete', { id: '{{cron}}' }]]],
    results: [/id: /, /happy new year/, /deleted/]
  },
  'the web': {
    permission_mode: 'manual',
    steps: [
      [
        ['FetchURL', { url: 'https://pages.example.com/' }],
        ['WebSearch', { query: 'one' }]
      ]
    ],
    results: [/The text of the page/, /pages\.example\.com\/one/],
    asked: 0
  },
  'a skill of the project': { permission_mode: 'manual', steps: [[['Skill', { skill: 'tidy' }]]], results: [/tidy/], asked: 0 },
  'calls that cannot be made are answered': {
    permission_mode: 'manual',
    steps: [
      [
        ['Nothing', {}],
        ['Read', { wrong: 1 }]
      ]
    ],
    results: [/Nothing/, /path|wrong/],
    asked: 0
  }
}

/** Its script is in the prompt; what stands there for its place follows from what was said since. */
function model(messages: readonly Said[]): readonly Step[] {
  const text = (message: Said | undefined) => JSON.stringify(message?.content ?? '')
  const at = messages.findLastIndex(message => message.role === 'user' && /script:|part (?:x|y)|a part of the work/.test(text(message)))
  const wish = text(messages[at])
  const after = messages.slice(at + 1)
  const answers = after.filter(({ role }) => role === 'assistant').length
  const over: readonly Step[] = [{ thinking: 'hm' }, { text: 'That is all there is to say. '.repeat(10), chunks: 3 }]
  const name = /script:([^"\\]+)/.exec(wish)?.[1]?.trim()
  if (name === undefined)
    return answers === 0 ? [{ tools: [{ name: 'Bash', args: { command: 'echo inside' }, id: `c${serial++}` }] }] : over
  const said = after.map(message => text(message)).join('\n')
  const fill = (args: object) =>
    JSON.parse(
      JSON.stringify(args)
        .replaceAll('{{plan}}', /Plan file: (\S+?\.md)/.exec(said)?.[1] ?? '')
        .replaceAll('{{task}}', /task_id: ([a-z]+-\w+)/.exec(said)?.[1] ?? '')
        .replaceAll('{{cron}}', /id: (\w+)/.exec(said)?.[1] ?? '')
    ) as Record<string, unknown>
  const step = rows[name]?.steps[answers]
  return step
    ? [{ text: 'Looking. ' }, { tools: step.map(([tool, args = {}]) => ({ name: tool, args: fill(args), id: `c${serial++}` })) }]
    : over
}
let serial = 0

async function start(t: TestContext, config: TestKernelOptions['config'] = {}) {
  const upstream = await fakeUpstream(t, body => model(body.messages as readonly Said[]))
  const web = createServer((req, res) => {
    req.resume()
    const found = { search_results: [{ title: 'One', url: 'https://pages.example.com/one', snippet: 'a page' }] }
    res.end(req.url === '/search' ? JSON.stringify(found) : 'The text of the page.')
  })
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  t.after(() => {
    web.closeAllConnections()
    web.close()
  })
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
  const home = await freshDir()
  const settings = modelConfig(upstream.url, { more: 'capabilities = ["image_in", "thinking"]' })
  await writeFile(
    join(home, 'config.toml'),
    `${settings}\n[services.svc_fetch]\nbase_url = "${url}/fetch"\n[services.svc_search]\nbase_url = "${url}/search"\n`
  )
  const server = await startTestKernel(t, {
    packs: await loadDefaultPacks(),
    home,
    config: { agent: { retry_base_ms: 1 }, subagents: { swarm_spacing_ms: 1 }, ...config }
  })
  const socket = await server.connect()
  socket.ws.setMaxListeners(0) // one per row
  // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
  const ask = async (method: string, path: string, body?: object): Promise<any> => {
    const answer = await server.rest.json(method, `/api/v1${path}`, body)
    if (answer.code !== 0 && answer.code !== 40909) throw new Error(`${method} ${path}: ${answer.code} ${answer.msg}`)
    return answer.data
  }
  return { server, socket, ask }
}

/** Plays a row in a session of its own. */
async function play({ socket, ask }: Awaited<ReturnType<typeof start>>, name: string, row: Row) {
  const cwd = await freshDir()
  await mkdir(join(cwd, '.svc-code', 'skills', 'tidy'), { recursive: true })
  await writeFile(join(cwd, '.svc-code', 'skills', 'tidy', 'SKILL.md'), '---\nname: tidy\ndescription: tidies up\n---\nTidy up.\n')
  await writeFile(join(cwd, 'notes.txt'), 'a needle\n')
  await writeFile(join(cwd, 'a.png'), png(4, 4))
  const { id } = await ask('POST', '/sessions', { metadata: { cwd } })
  await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  const frames: Frame[] = []
  let asked = 0
  const wrong: unknown[] = []
  const hear = () => {
    const frame = socket.frames.at(-1) // the client's own listener came first
    if (!frame || frame.session_id !== id) return
    frames.push(frame)
    const { type, payload } = frame
    const answer = async () => {
      if (type === 'event.approval.requested') {
        const given = row.approvals?.[Math.min(asked++, row.approvals.length - 1)]
        if (given) await ask('POST', `/sessions/${id}/approvals/${payload.approval_id}`, given)
      }
      if (type === 'event.question.requested' && row.questions) {
        const path = `/sessions/${id}/questions/${payload.question_id}`
        if (row.questions === 'dismiss') await ask('POST', `${path}:dismiss`)
        else await ask('POST', path, { answers: { q_0: { kind: 'single', option_id: 'opt_0_0' } } })
      }
      if (row.abort && /^event\.(?:approval|question)\.requested$/.test(type)) await ask('POST', `/sessions/${id}:abort`)
    }
    answer().catch(error => void wrong.push(error))
  }
  socket.ws.on('message', hear)
  if (row.agent) await ask('POST', `/sessions/${id}/profile`, { agent_config: row.agent })
  const { permission_mode = 'manual' } = row
  const { prompt_id } = await ask('POST', `/sessions/${id}/prompts`, {
    content: [{ type: 'text', text: `script:${name}` }],
    permission_mode
  })
  const over = ({ type, payload }: Frame) => /^prompt\.(?:completed|aborted)$/.test(type) && payload.promptId === prompt_id
  const end = await socket.next(over)
  const idle = async () => !(await ask('GET', `/sessions/${id}`)).busy
  // What is told of work in the background comes behind the end of the prompt.
  while (!(await idle())) await socket.next(frame => frame.session_id === id && !frames.includes(frame))
  socket.ws.off('message', hear)
  assert.deepEqual(wrong, [], name)
  const results = new Map(
    frames.flatMap(({ type, payload }) => (type === 'tool.result' && payload.agentId === 'main' ? [[payload.toolCallId, payload]] : []))
  )
  const calls = frames.flatMap(({ type, payload }) => (type === 'tool.call.started' ? [payload] : []))
  const own = calls.filter(({ agentId }) => agentId === 'main').map(({ toolCallId }) => results.get(toolCallId))
  return { frames, asked, reason: end.type === 'prompt.aborted' ? 'aborted' : end.payload.reason, calls, own, id }
}

test('every tool does its work in every mode and after every decision, told in order', { timeout: 120_000 }, async t => {
  const scene = await start(t)
  const called = new Set<string>()
  const faults: string[] = []
  let first = ''
  await Promise.all(
    Object.entries(rows).map(async ([name, row]) => {
      const { frames, asked, reason, calls, own, id } = await play(scene, name, row)
      first ||= id
      for (const call of calls) called.add(call.name)
      faults.push(...orderFaults(frames).map(text => `${name}: ${text}`))
      if (reason !== (row.ends ?? 'completed')) faults.push(`${name}: ended as ${reason}`)
      if (row.asked !== undefined && asked !== row.asked) faults.push(`${name}: asked ${asked} times, not ${row.asked}`)
      for (const [at, expected] of row.results.entries()) {
        const said = String(own[at]?.output)
        if (expected && !expected.test(said)) faults.push(`${name}: result ${at} is ${said.slice(0, 300)}`)
      }
    })
  )
  assert.deepEqual(faults, [])
  const { tools } = await scene.ask('GET', `/tools?session_id=${first}`)
  const missing = (tools as readonly { name: string; source: string }[]).filter(
    ({ name, source }) => source === 'builtin' && !called.has(name)
  )
  assert.deepEqual(
    missing.map(({ name }) => name),
    [],
    'every built-in tool is in the table'
  )
})

test('an approval and a question that nobody answers in time end as what they are, and a late answer hears so', async t => {
  const scene = await start(t, { interactions: { approval_ttl_ms: 40 }, questions: { question_ttl_ms: 40 } })
  const approval = await play(scene, 'two calls of a response are asked for one after the other', {
    ...rows['two calls of a response are asked for one after the other'],
    approvals: [undefined]
  } as Row)
  assert.deepEqual([approval.reason, approval.asked, orderFaults(approval.frames)], ['completed', 2, []])
  const { approval_id } = approval.frames.find(({ type }) => type === 'event.approval.requested')?.payload ?? {}
  const late = await scene.server.rest.json('POST', `/api/v1/sessions/${approval.id}/approvals/${approval_id}`, yes)
  assert.deepEqual([late.code, late.data], [41001, { resolved: false }])
  const question = await play(scene, 'a question is dismissed', { permission_mode: 'yolo', steps: [], results: [] })
  assert.deepEqual([question.reason, orderFaults(question.frames)], ['completed', []])
  assert.equal(question.frames.filter(({ type }) => type === 'event.question.dismissed').length, 1)
})
