/** Plan mode over the real tools, permissions and approvals: entering, what it forbids, the review and all its ends, undo, restarts. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import config from '../../../features/config/pack.ts'
import { Histories } from '../../../features/history/index.ts'
import { approvalRequested, listApprovals, resolveApproval } from '../../../features/interactions/index.ts'
import interactions from '../../../features/interactions/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import plan from '../../../features/plan/pack.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { updateProfile } from '../../../features/sessions/index.ts'
import { Tools } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import files from '../../../features/tools-files/pack.ts'
import { definePack, Type } from '../../../kernel/index.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, insider, type StartOptions, startAgent, wireOf } from '../agent/start.ts'
import { scripted } from '../tools/fakes.ts'

interface Approval {
  readonly approval_id: string
  readonly tool_name: string
  readonly tool_input_display: { readonly kind: string; readonly plan?: string; readonly path?: string; readonly options?: unknown }
}

interface Result {
  readonly toolCallId: string
  readonly output: string
  readonly isError?: true
}
interface Turn {
  readonly asked: readonly Approval[]
  readonly results: readonly Result[]
}

async function start(t: TestContext, replies: readonly Reply[], options: StartOptions & { readonly toml?: string } = {}) {
  const llm = scriptedLlm(...replies, 'done')
  const inside = insider()
  let histories: Histories | undefined
  const probe = definePack({
    name: 'probe',
    needs: { histories: Histories },
    setup: (_ctx, given) => {
      histories = given.histories
    }
  })
  const home = options.home ?? (await freshDir())
  if (options.toml !== undefined) await writeFile(join(home, 'config.toml'), options.toml)
  const packs = [config, interactions, tools, files, permissions, plan, inside.pack, probe, ...(options.packs ?? [])]
  const server = await startAgent(t, llm, { ...options, home, packs })
  const params = { session_id: server.session_id }
  const host = async () => (await inside.main(server)).host
  const seen = new Set<string>()
  return {
    ...server,
    llm,
    params,
    inside,
    host,
    history: async () => await histories!.of(await host()),
    setPlan: (plan_mode: boolean) => server.call(updateProfile, { params, body: { agent_config: { plan_mode } } }),
    planMode: async () => (await server.call(readStatus, { params })).data.plan_mode,
    async planFile() {
      const dir = join((await host()).dir, 'plans')
      const [name] = await readdir(dir).catch(() => [])
      return join(dir, name ?? (/plans\/([a-z-]+\.md)/.exec(JSON.stringify(llm.requests.at(-1)?.messages))?.[1] as string))
    },
    /** Submits, and answers the next approvals one after the other. */
    async turn(text: string, answers: readonly Record<string, unknown>[] = [], extra: Record<string, unknown> = {}): Promise<Turn> {
      const before = server.events.filter(({ type }) => /^prompt\.(completed|aborted)$/.test(type)).length
      await server.prompt(text, extra)
      const asked: Approval[] = []
      for (const answer of answers) {
        const { payload } = await server.waitFor(
          event => event.type === approvalRequested.type && !seen.has((event.payload as Approval).approval_id)
        )
        const approval = payload as Approval
        seen.add(approval.approval_id)
        asked.push(approval)
        const { approval_id } = approval
        const reply = await server.call(resolveApproval, { params: { ...params, approval_id }, body: answer as { decision: 'approved' } })
        assert.equal(reply.code, 0)
      }
      await server.settled(before + 1)
      return { asked, results: resultsOf(server) }
    }
  }
}
type Server = Awaited<ReturnType<typeof start>>

const resultsOf = (server: Pick<Server, 'events'>): readonly Result[] =>
  server.events.flatMap(({ type, payload }) => (type === 'tool.result' ? [payload as Result] : []))
const call = (name: string, args: object = {}, id = name) => toolCalls({ id, name, args })
/** The text of the plan file's path in a request, from the reminder. */
const fileIn = (text: string) => /\/\S+\/plans\/[a-z-]+\.md/.exec(text)?.[0] ?? ''
const said = (server: Server, n: number) => JSON.stringify(server.llm.requests[n]?.messages)
/** Writes the plan file that the reminder names. */
const writePlan =
  (text: string): Reply =>
  request =>
    call('Write', { path: fileIn(JSON.stringify(request.messages)), content: text }, `write ${text}`)

/** A turn that enters by the profile, writes a plan and puts it up for review. */
async function reviewed(t: TestContext, answer: Record<string, unknown>, exit: object = {}, permission_mode = 'manual') {
  const server = await start(t, [writePlan('1. Do it.'), call('ExitPlanMode', exit)])
  await server.setPlan(true)
  const { asked, results } = await server.turn('plan it', [answer], { permission_mode })
  return { server, asked, result: results.at(-1)!, goesOn: server.llm.requests.length === 3 }
}

test('plan mode goes on and off by the profile, shows in the status, is announced, and survives a restart', async t => {
  const server = await start(t, [])
  assert.equal(await server.planMode(), false)
  assert.equal((await server.setPlan(true)).code, 0)
  assert.equal(await server.planMode(), true)
  assert.equal((await server.setPlan(true)).code, 0, 'the value that it has is fine')
  await server.stop()
  const again = await start(t, [], { home: server.home, session_id: server.session_id })
  assert.equal(await again.planMode(), true)
  await again.setPlan(false)
  assert.equal(await again.planMode(), false)
  const told = again.events.flatMap(({ type, payload }) =>
    type === 'agent.status.updated' && 'planMode' in (payload as object) ? [(payload as { planMode: boolean }).planMode] : []
  )
  assert.deepEqual(told, [false])
})

test('new sessions begin in plan mode when the configuration says so; sessions that exist keep theirs', async t => {
  const server = await start(t, ['ok'], { toml: 'default_plan_mode = true' })
  assert.equal(await server.planMode(), true, 'before the first prompt, too')
  await server.turn('go')
  assert.equal(await server.planMode(), true)
  assert.match(said(server, 0), /Plan mode is on/)
  await server.setPlan(false)
  await server.stop()
  const again = await start(t, ['ok'], { home: server.home, session_id: server.session_id })
  assert.equal(await again.planMode(), false)

  const off = await start(t, ['ok'])
  await off.turn('go')
  await off.stop()
  await writeFile(join(off.home, 'config.toml'), 'default_plan_mode = true')
  const later = await start(t, ['ok'], { home: off.home, session_id: off.session_id })
  assert.equal(await later.planMode(), false)
})

test('in plan mode only the plan file is written, without an approval, in every permission mode', async t => {
  for (const permission_mode of ['manual', 'yolo', 'auto']) {
    const server = await start(t, [call('Write', { path: 'code.ts', content: 'x' }), writePlan('1. Do it.'), 'planned'])
    await server.setPlan(true)
    const { results } = await server.turn('go', [], { permission_mode })
    assert.deepEqual(
      results.map(({ isError }) => isError ?? false),
      [true, false]
    )
    assert.match(results[0]?.output ?? '', /only|no file may be changed/)
    await assert.rejects(readFile(join(server.cwd, 'code.ts')))
    assert.equal(await readFile(fileIn(said(server, 0)), 'utf8'), '1. Do it.')
  }
})

test('beside the plan file in one response, other files are refused and read as ever; a call that writes both is refused whole', async t => {
  const both = definePack({
    name: 'both',
    setup: ctx =>
      void ctx.contribute(
        Tools,
        scripted({
          name: 'Both',
          parameters: Type.Object({ paths: Type.Array(Type.String()) }),
          accesses: args => (args as { paths: string[] }).paths.map(path => ({ kind: 'write' as const, path })),
          run: async () => ({ output: 'written' })
        })
      )
  })
  const replies: Reply[] = [
    request => {
      const path = fileIn(JSON.stringify(request.messages))
      return toolCalls(
        { id: 'code', name: 'Write', args: { path: 'code.ts', content: 'x' } },
        { id: 'plan', name: 'Write', args: { path, content: '1. Do it.' } },
        { id: 'more', name: 'Edit', args: { path, old_string: 'Do', new_string: 'Make' } },
        { id: 'look', name: 'Read', args: { path: 'there.ts' } },
        { id: 'both', name: 'Both', args: { paths: [path, '/elsewhere'] } },
        { id: 'only', name: 'Both', args: { paths: [path] } }
      )
    },
    toolCalls({ id: 'again', name: 'Read', args: { path: 'there.ts' } }, { id: 'exit', name: 'ExitPlanMode' })
  ]
  const server = await start(t, replies, { packs: [both] })
  await writeFile(join(server.cwd, 'there.ts'), 'const a = 1')
  await server.setPlan(true)
  const { results } = await server.turn('go', [{ decision: 'approved' }], { permission_mode: 'yolo' })

  const failed = Object.fromEntries(results.map(({ toolCallId, isError }) => [toolCallId, isError ?? false]))
  assert.deepEqual(failed, { code: true, plan: false, more: false, look: false, both: true, only: false, again: false, exit: false })
  await assert.rejects(readFile(join(server.cwd, 'code.ts')))
  assert.equal(await readFile(fileIn(said(server, 0)), 'utf8'), '1. Make it.')
  assert.match(results.find(({ toolCallId }) => toolCallId === 'exit')?.output ?? '', /The user approved the plan[\s\S]*1\. Make it\./)
})

test('a deny rule of the user holds for the plan file, too', async t => {
  const server = await start(t, [writePlan('x')], { toml: 'permission.deny = [{ tool = "Write", reason = "hands off" }]' })
  await server.setPlan(true)
  const { results } = await server.turn('go')
  assert.match(results[0]?.output ?? '', /forbids.*hands off/)
})

test('a link in place of the plan file leads nowhere', async t => {
  const server = await start(t, [writePlan('x'), call('ExitPlanMode')])
  await server.setPlan(true)
  await server.turn('go', [{ decision: 'cancelled' }])
  const file = await server.planFile()
  const secret = join(server.cwd, 'secret')
  await writeFile(secret, 'secret')
  await server.stop()
  const again = await start(t, [call('Write', { path: file, content: 'x' }), call('ExitPlanMode')], {
    home: server.home,
    session_id: server.session_id
  })
  await rm(file)
  await symlink(secret, file)
  const { results } = await again.turn('go')
  assert.ok(results.every(({ isError }) => isError))
  assert.equal(await readFile(secret, 'utf8'), 'secret')
})

test('an agent that works for one that plans changes no file either', async t => {
  const server = await start(t, [call('Write', { path: 'code.ts', content: 'x' })])
  await server.setPlan(true)
  const session = (await server.host()).session
  const child = await session.createAgent({ type: 'sub', parent_agent_id: 'main' })
  await (await server.inside.agents.of(child)).run({ content: [{ type: 'text', text: 'do it' }] })
  assert.match(resultsOf(server)[0]?.output ?? '', /in plan mode: no file may be changed/)
  assert.match(said(server, 0), /look around and report/)
})

test('EnterPlanMode asks nobody, names the plan file, and is refused when plan mode is on', async t => {
  const server = await start(t, [call('EnterPlanMode'), call('EnterPlanMode', {}, 'again'), 'ok'])
  const { results } = await server.turn('go')
  assert.ok(!server.events.some(({ type }) => type === approvalRequested.type))
  assert.match(results[0]?.output ?? '', /Plan file: \/.*\/agents\/main\/plans\/[a-z]+-[a-z]+-[a-z]+\.md$/)
  assert.equal(results[1]?.isError, true)
  assert.equal(await server.planMode(), true)

  const toml = '[permission]\nask = [{ tool = "EnterPlanMode" }]\n'
  const no = await start(t, [call('EnterPlanMode')], { toml })
  const refused = await no.turn('go', [{ decision: 'rejected', feedback: 'just do it' }])
  assert.match(refused.results[0]?.output ?? '', /rejected.*just do it/)
  assert.equal(await no.planMode(), false)
})

test('an approved plan ends plan mode before the call is shown, and the model gets it to carry out', async t => {
  const { server, asked, result, goesOn } = await reviewed(t, { decision: 'approved' })
  const file = await server.planFile()
  assert.deepEqual(asked[0]?.tool_input_display, { kind: 'plan_review', plan: '1. Do it.', path: file })
  assert.ok(result.output.endsWith(`\n\nPlan saved to: ${file}\n\n## Approved Plan:\n1. Do it.`), result.output)
  assert.deepEqual([result.isError, goesOn, await server.planMode()], [undefined, true, false])
  const order = server.events.flatMap(({ type, payload }) => {
    const { planMode, name } = payload as { planMode?: boolean; name?: string }
    if (type === 'agent.status.updated') return planMode === false ? ['off'] : []
    return type === 'tool.call.started' ? [name] : type.startsWith('event.approval') || type === 'plan.revision' ? [type] : []
  })
  const from = order.indexOf('plan.revision')
  assert.deepEqual(order.slice(from, from + 5), [
    'plan.revision',
    'event.approval.requested',
    'event.approval.resolved',
    'off',
    'ExitPlanMode'
  ])
})

test('each review keeps the plan as it was', async t => {
  const server = await start(t, [writePlan('one'), call('ExitPlanMode', {}, 'a'), writePlan('two'), call('ExitPlanMode', {}, 'b')])
  await server.setPlan(true)
  await server.turn('go', [{ decision: 'rejected', selected_label: 'Revise', feedback: 'shorter' }, { decision: 'approved' }])
  const revisions = server.events.flatMap(({ type, payload }) =>
    type === 'plan.revision' ? [payload as { id: string; version: number; path: string; sha256: string; bytes: number }] : []
  )
  const id = revisions[0]?.id
  assert.deepEqual(
    revisions.map(({ version, path, bytes }) => [version, path, bytes]),
    [
      [1, `plan/${id}/v1.md`, 3],
      [2, `plan/${id}/v2.md`, 3]
    ]
  )
  const dir = (await server.host()).dir
  assert.equal(await readFile(join(dir, `plan/${id}/v1.md`), 'utf8'), 'one')
  assert.equal(await readFile(join(dir, `plan/${id}/v2.md`), 'utf8'), 'two')
  assert.match(revisions[0]?.sha256 ?? '', /^[0-9a-f]{64}$/)
})

test('of several approaches, described or not, the user chooses one; a single one is not offered as a choice', async t => {
  const options = [
    { label: 'Small', description: 'a little' },
    { label: 'Large', description: 'a lot' }
  ]
  const chosen = await reviewed(t, { decision: 'approved', selected_label: 'Large' }, { options })
  assert.deepEqual(chosen.asked[0]?.tool_input_display.options, options)
  assert.match(chosen.result.output, /only this one: Large/)
  const short = [{ label: 'Small' }, { label: 'Large' }]
  const brief = await reviewed(t, { decision: 'approved', selected_label: 'Large' }, { options: short })
  assert.deepEqual(
    brief.asked[0]?.tool_input_display.options,
    short.map(option => ({ ...option, description: '' }))
  )
  const one = await reviewed(t, { decision: 'approved', selected_label: 'Approve' }, { options: options.slice(0, 1) })
  assert.equal(one.asked[0]?.tool_input_display.options, undefined)
  assert.doesNotMatch(one.result.output, /only this one/)
})

test('an answer with a label that nobody offered, or that means the opposite, is refused and changes nothing', async t => {
  const options = [
    { label: 'Small', description: 'a little' },
    { label: 'Large', description: 'a lot' }
  ]
  const server = await start(t, [writePlan('1. Do it.'), call('ExitPlanMode', { options })])
  await server.setPlan(true)
  await server.prompt('plan it', { permission_mode: 'manual' })
  const { payload } = await server.waitFor(event => event.type === approvalRequested.type)
  const params = { ...server.params, approval_id: (payload as Approval).approval_id }
  const before = await server.call(listApprovals, { params: server.params, query: { status: 'pending' } })
  for (const body of [
    { decision: 'approved', selected_label: 'Medium' },
    { decision: 'approved', selected_label: 'small' },
    { decision: 'approved', selected_label: 'Reject and Exit' },
    { decision: 'rejected', selected_label: 'Large' }
  ] as const) {
    const { code, details } = await server.call(resolveApproval, { params, body })
    assert.deepEqual([code, details?.map(({ path }) => path)], [40001, ['body.selected_label']], body.selected_label)
  }
  assert.deepEqual((await server.call(listApprovals, { params: server.params, query: { status: 'pending' } })).data, before.data)
  assert.deepEqual(
    server.events.filter(({ type }) => type === 'event.approval.resolved'),
    []
  )
  assert.equal(await server.planMode(), true)
  assert.equal((await server.call(resolveApproval, { params, body: { decision: 'approved', selected_label: 'Small' } })).code, 0)
  await server.settled(1)
  assert.match(resultsOf(server).at(-1)?.output ?? '', /only this one: Small/)
})

const ends: readonly [string, Record<string, unknown>, { error: boolean; plan_mode: boolean; goesOn: boolean; text: RegExp }][] = [
  ['revise', { decision: 'rejected', selected_label: 'Revise' }, { error: false, plan_mode: true, goesOn: true, text: /changed/ }],
  ['feedback', { decision: 'rejected', feedback: 'no tests?' }, { error: false, plan_mode: true, goesOn: true, text: /no tests\?/ }],
  [
    'exit',
    { decision: 'rejected', selected_label: 'Reject and Exit' },
    { error: true, plan_mode: false, goesOn: false, text: /ended plan mode/ }
  ],
  ['rejected', { decision: 'rejected' }, { error: true, plan_mode: true, goesOn: false, text: /rejected the plan/ }],
  ['cancelled', { decision: 'cancelled' }, { error: false, plan_mode: true, goesOn: true, text: /dismissed/ }]
]
for (const [name, answer, expected] of ends) {
  test(`a review that ends with "${name}" says so to the model, and leaves plan mode as it should be`, async t => {
    const { server, result, goesOn } = await reviewed(t, answer)
    const { error, plan_mode, goesOn: on, text } = expected
    assert.match(result.output, text)
    assert.deepEqual([result.isError ?? false, await server.planMode(), goesOn], [error, plan_mode, on])
  })
}

test('what the user says with the approval goes to the model, of a plan and of any call', async t => {
  const { result } = await reviewed(t, { decision: 'approved', feedback: 'tests first' })
  assert.match(result.output, /They say:\ntests first\n\nPlan saved to/)
  const server = await start(t, [call('EnterPlanMode')], { toml: '[permission]\nask = [{ tool = "EnterPlanMode" }]\n' })
  await server.turn('go', [{ decision: 'approved', feedback: 'be thorough' }])
  assert.match(said(server, 1), /approved the call and says: be thorough/)
})

test('in yolo mode the plan is reviewed, in auto mode it is carried out unreviewed', async t => {
  assert.equal((await reviewed(t, { decision: 'approved' }, {}, 'yolo')).asked.length, 1)
  const server = await start(t, [writePlan('1. Do it.'), call('ExitPlanMode')])
  await server.setPlan(true)
  const { results } = await server.turn('go', [], { permission_mode: 'auto' })
  assert.match(results.at(-1)?.output ?? '', /\n## Plan \(auto-approved, not user-reviewed\):\n1\. Do it\.$/)
  assert.equal(await server.planMode(), false)
})

test('there is nothing to review without plan mode, without a plan, or while the plan is being written', async t => {
  const off = await start(t, [call('ExitPlanMode')])
  assert.match((await off.turn('go')).results[0]?.output ?? '', /not on/)

  const empty = await start(t, [call('ExitPlanMode')])
  await empty.setPlan(true)
  assert.match((await empty.turn('go')).results[0]?.output ?? '', /empty/)

  const both: Reply = request => {
    const path = fileIn(JSON.stringify(request.messages))
    return toolCalls({ id: 'w', name: 'Write', args: { path, content: 'x' } }, { id: 'x', name: 'ExitPlanMode' })
  }
  const early = await start(t, [both])
  await early.setPlan(true)
  const { results } = await early.turn('go')
  assert.match(results.find(({ toolCallId }) => toolCallId === 'x')?.output ?? '', /may change/)
})

test('a plan has at most 100 KB and lies in a regular file; what is refused is not put up', { timeout: 30_000 }, async t => {
  const exits = ['large', 'folder', 'pipe', 'fits'].flatMap(id => [call('ExitPlanMode', {}, id), 'ok'])
  const server = await start(t, [writePlan('x'), 'ok', ...exits])
  await server.setPlan(true)
  await server.turn('write')
  const file = await server.planFile()
  const exit = async (answers: readonly Record<string, unknown>[] = []) => (await server.turn('exit', answers)).results.at(-1)

  await writeFile(file, 'p'.repeat(102_401))
  assert.match((await exit())?.output ?? '', /102401 bytes; at most 102400/)

  await rm(file)
  await mkdir(file)
  assert.match((await exit())?.output ?? '', /not a regular file/)
  await rmdir(file)
  execFileSync('mkfifo', [file])
  assert.match((await exit())?.output ?? '', /not a regular file/)
  assert.ok(!server.events.some(({ type }) => type === 'plan.revision'))

  await rm(file)
  await writeFile(file, 'p'.repeat(102_400))
  assert.equal((await exit([{ decision: 'approved' }]))?.isError, undefined)
  assert.equal(await server.planMode(), false)
})

test('options with names that clients use, or twice the same, are refused', async t => {
  for (const labels of [
    ['Approve', 'B'],
    ['revise', 'B'],
    ['A', 'A']
  ]) {
    const options = labels.map(label => ({ label, description: '' }))
    const server = await start(t, [writePlan('x'), call('ExitPlanMode', { options })])
    await server.setPlan(true)
    assert.equal((await server.turn('go')).results.at(-1)?.isError, true)
  }
})

test('the model is told everything on entry and by each prompt, a line after two answers, and once when it is over', async t => {
  const busy = Array.from({ length: 6 }, (_, n) => call('Read', { path: `f${n}` }, `r${n}`))
  const server = await start(t, [...busy, 'a', 'b', 'c', 'd'])
  await server.setPlan(true)
  await server.turn('one')
  await server.turn('two')
  await server.setPlan(false)
  await server.turn('three')
  await server.turn('four')
  const counts = (n: number) => {
    const text = said(server, n)
    return [/Plan mode is on\. Look/g, /Plan mode is still on/g, /Plan mode is off/g].map(each => text.match(each)?.length ?? 0)
  }
  assert.deepEqual([0, 1, 2, 4, 5, 6, 7, 8, 9].map(counts), [
    [1, 0, 0],
    [1, 0, 0],
    [1, 1, 0],
    [1, 2, 0],
    [2, 2, 0],
    [2, 2, 0],
    [3, 2, 0],
    [3, 2, 1],
    [3, 2, 1]
  ])
})

test('coming back to plan mode, the model is told of the plan that is there', async t => {
  const server = await start(t, [writePlan('old'), 'a', 'b', 'c'])
  await server.setPlan(true)
  await server.turn('one')
  const file = await server.planFile()
  await server.setPlan(false)
  await server.turn('two')
  await server.setPlan(true)
  await server.turn('three')
  assert.ok(said(server, 3).includes(`The plan file ${file} holds a plan from before`))
})

test('undo restores whether plan mode was on, and no kept revision is replaced', async t => {
  const server = await start(t, ['a', writePlan('x'), call('ExitPlanMode'), 'b', call('ExitPlanMode', {}, 'again')])
  await server.turn('one')
  await server.setPlan(true)
  await server.turn('two', [{ decision: 'approved' }])
  assert.equal(await server.planMode(), false)
  const history = await server.history()
  const { messages } = await history.messages.page({ size: 100 })
  const at = (text: string) => messages.findIndex(({ content }) => JSON.stringify(content).includes(text))
  await history.append({ type: 'context.undone', from: at('"two"'), context_tokens: 0 })
  assert.equal(await server.planMode(), true)
  await server.turn('three', [{ decision: 'cancelled' }])
  const versions = (await wireOf(server)).flatMap(record => (record.type === 'plan.revision' ? [record.version] : []))
  assert.deepEqual(versions, [1, 2])
  await history.append({ type: 'context.undone', from: at('"one"'), context_tokens: 0 })
  assert.equal(await server.planMode(), false)
})

test('undo does not take back that the session began in plan mode', async t => {
  const server = await start(t, [writePlan('x'), call('ExitPlanMode')], { toml: 'default_plan_mode = true' })
  await server.turn('one', [{ decision: 'approved' }])
  assert.equal(await server.planMode(), false)
  await (await server.history()).append({ type: 'context.undone', from: 0, context_tokens: 0 })
  assert.equal(await server.planMode(), true)
})

test('a review that a killed server left open is over when the session is loaded: plan mode stays, and the plan can be put up again', async t => {
  const first = await start(t, [writePlan('1. Do it.'), call('ExitPlanMode')])
  await first.setPlan(true)
  await first.prompt('plan it')
  await first.waitFor(event => event.type === approvalRequested.type)
  await first.call(readSnapshot, { params: first.params }) // answers when all events are on disk

  const again = await start(t, [call('ExitPlanMode', {}, 'again')], { home: await copyOfHome(first.home), session_id: first.session_id })
  assert.equal(await again.planMode(), true)
  const resolved = again.events.find(({ type }) => type === 'event.approval.resolved')?.payload as { decision: string }
  assert.equal(resolved.decision, 'cancelled')
  const { asked, results } = await again.turn('go on', [{ decision: 'approved' }])
  assert.equal(asked[0]?.tool_input_display.plan, '1. Do it.')
  assert.match(results.at(-1)?.output ?? '', /## Approved Plan:/)
  const versions = (await wireOf(again)).flatMap(record => (record.type === 'plan.revision' ? [record.version] : []))
  assert.deepEqual(versions, [1, 2])
})

test('without the pack of approvals a plan cannot be approved: the turn ends and plan mode stays', async t => {
  const server = await start(t, [writePlan('x'), call('ExitPlanMode')])
  await server.setPlan(true)
  await server.kernel.unload('interactions')
  const { results } = await server.turn('go')
  assert.match(results.at(-1)?.output ?? '', /could not be put to the user/)
  assert.equal(await server.planMode(), true)
})
