import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Config } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { AlreadyResolved, ApprovalMissing, listApprovals, resolveApproval } from '../../../features/interactions/index.ts'
import interactions from '../../../features/interactions/pack.ts'
import { type GatePorts, permit } from '../../../features/permissions/gate.ts'
import { Permissions } from '../../../features/permissions/index.ts'
import permissionsPack from '../../../features/permissions/pack.ts'
import { SessionMissing, Sessions } from '../../../features/sessions/index.ts'
import { listTools, type ToolCallContext, type ToolOutcome, ToolRunner, Tools } from '../../../features/tools/index.ts'
import toolsPack from '../../../features/tools/pack.ts'
import { AppError, definePack, type Pack } from '../../../kernel/index.ts'
import { startTestKernel, stub } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { type FakeAgent, fakeAgent, scripted, silent, type TestLike, temporary } from '../tools/fakes.ts'

interface Handles {
  runner: ToolRunner
  permissions: Permissions
  config: Config
}

async function server(
  t: TestLike & { after(fn: () => unknown): void },
  options: { readonly without?: string; readonly toml?: string; readonly now?: () => Date } = {}
) {
  let made: FakeAgent | undefined
  const host = definePack({
    name: 'host',
    setup: async ctx => {
      made = await fakeAgent(t, { hosts: ctx.hosts })
    }
  })
  const main = () => made as FakeAgent // made by the first pack
  const handles: Partial<Handles> = {}
  const sessions = stub(Sessions, {
    exists: async id => id === main().session.id,
    loaded: id => (id === main().session.id ? main().session : undefined),
    list: async () => [main().session.state],
    load: async id => {
      if (id !== main().session.id) throw new AppError(SessionMissing)
      return main().session
    }
  })
  const probe = definePack({
    name: 'probe',
    needs: { runner: ToolRunner, permissions: Permissions, config: Config },
    setup(ctx, { runner, permissions, config }) {
      ctx.contribute(Tools, scripted({ name: 'Danger' }))
      Object.assign(handles, { runner, permissions, config })
    }
  })
  const home = await temporary()
  if (options.toml !== undefined) await writeFile(join(home, 'config.toml'), options.toml)
  const packs: Pack[] = [host, config, sessions, toolsPack, permissionsPack, interactions, probe].filter(
    pack => pack.name !== options.without
  )
  const kernel = await startTestKernel(t, { packs, home, ...(options.now ? { now: options.now } : {}) })
  const { runner, permissions, config: settings } = handles as Handles
  const agent = main()
  return {
    ...kernel,
    agent,
    permissions,
    settings,
    params: { session_id: agent.session.id },
    /** Runs one call of the tool that must be asked for. */
    danger(signal = new AbortController().signal, by: FakeAgent = agent): Promise<readonly ToolOutcome[]> {
      return runner.run({ agent: by, turn_id: 0, calls: [{ id: 'c', name: 'Danger', arguments: '' }], signal, report: () => undefined })
    },
    /** Id of the first approval that was asked for behind this one. */
    async asked(behind = ''): Promise<string> {
      let passed = behind === ''
      const idOf = ({ payload }: { readonly payload: unknown }) => (payload as { approval_id: string }).approval_id
      const event = await kernel.waitFor(each => {
        if (each.type !== 'event.approval.requested') return false
        if (passed) return true
        passed = idOf(each) === behind
        return false
      })
      return idOf(event)
    }
  }
}

test('a call waits for its approval over REST, and runs', async t => {
  let ms = 0
  const { danger, asked, call, params, agent, events } = await server(t, { now: () => new Date(ms++) })
  const outcome = danger()
  const approval_id = await asked()
  const { data } = await call(listApprovals, { params, query: { status: 'pending' } })
  assert.equal(data?.items[0]?.approval_id, approval_id)
  assert.deepEqual(data?.items[0]?.tool_input_display, { kind: 'generic', summary: 'Danger: ', detail: {} })

  const answered = await call(resolveApproval, { params: { ...params, approval_id }, body: { decision: 'approved', scope: 'session' } })

  assert.equal(answered.data?.resolved, true)
  const told = events.find(({ type }) => type === 'event.approval.resolved')?.payload as { resolved_at?: string } | undefined
  assert.equal(told?.resolved_at, answered.data?.resolved_at)
  assert.equal((await outcome)[0]?.result.output, 'Danger ')
  assert.deepEqual(agent.session.told, ['approval +1', 'approval -1'])
  assert.equal((await danger())[0]?.result.output, 'Danger ', 'approved for the session: not asked again')
})

test('an approval without a scope counts for its call alone', async t => {
  const { danger, asked, call, params } = await server(t)
  let approval_id = ''
  for (const _time of [1, 2]) {
    const outcome = danger()
    approval_id = await asked(approval_id)
    await call(resolveApproval, { params: { ...params, approval_id }, body: { decision: 'approved' } })
    assert.equal((await outcome)[0]?.result.output, 'Danger ')
  }
})

test('a call that is approved for the session runs when that is on record, or cannot be', async t => {
  for (const refused of [false, true]) {
    const recorded = latch()
    const order: string[] = []
    const ports = {
      permissions: {
        mode: async () => 'manual',
        remember: async () => {
          await recorded.opened
          order.push('recorded')
          if (refused) throw new Error('the disk is full')
        }
      },
      remembered: async () => [],
      rules: () => ({ rules: [], unsure: false }),
      interactions: () => ({ ask: async () => ({ how: 'answered', answer: { decision: 'approved', scope: 'session' } }) }),
      log: silent,
      home: '/nowhere'
    } as unknown as GatePorts // what the gate asks of them
    const execution = { description: 'danger', accesses: [], run: async () => ({ output: '' }) }
    const env = { agent: await fakeAgent(t), cwd: '/nowhere', turn_id: 0 }
    const context = { tool: { name: 'Danger' }, call: { id: 'a' }, args: {}, execution, env, signal: new AbortController().signal }
    const verdict = await permit(context as unknown as ToolCallContext, ports)
    assert.ok(verdict.kind === 'ask')
    const decision = verdict.ask().then(({ kind }) => order.push(kind))
    await new Promise(setImmediate)
    recorded.open()
    await decision
    assert.deepEqual(order, ['recorded', 'run'])
  }
})

test('a rejection with feedback reaches the model as an error', async t => {
  const { danger, asked, call, params, events } = await server(t)
  const outcome = danger()
  const approval_id = await asked()
  await call(resolveApproval, {
    params: { ...params, approval_id },
    body: { decision: 'rejected', feedback: 'too risky', scope: 'session' }
  })
  const result = (await outcome)[0]?.result
  assert.equal(result?.is_error, true)
  assert.match(String(result?.output), /rejected the call of Danger\. Reason: too risky/)
  const told = events.find(({ type }) => type === 'event.approval.resolved')?.payload as object
  assert.equal('scope' in told, false)
})

test('wrong answers are refused in the order body, session, approval', async t => {
  const { danger, asked, call, rest, params, token, url } = await server(t)
  void rest
  const unknown = { session_id: 'nope', approval_id: 'approval_x' }
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    return (await response.json()) as { code: number; data: unknown }
  }
  assert.equal((await post('/api/v1/sessions/nope/approvals/x', { decision: 'maybe' })).code, 40001)
  assert.equal((await call(resolveApproval, { params: unknown, body: { decision: 'approved' } })).code, SessionMissing.code)
  assert.equal(
    (await call(resolveApproval, { params: { ...params, approval_id: 'x' }, body: { decision: 'approved' } })).code,
    ApprovalMissing.code
  )
  const outcome = danger()
  const approval_id = await asked()
  const path = `/api/v1/sessions/${params.session_id}/approvals/${approval_id}`
  assert.equal((await post(path, { decision: 'approved', scope: 'forever' })).code, 40001)
  assert.equal((await post(path, { decision: 'cancelled' })).code, 0)
  assert.deepEqual(await post(path, { decision: 'approved' }).then(({ code, data }) => ({ code, data })), {
    code: AlreadyResolved.code,
    data: { resolved: false }
  })
  assert.match(String((await outcome)[0]?.result.output), /cancelled/)
  assert.equal((await call(listApprovals, { params: { session_id: 'nope' }, query: { status: 'pending' } })).code, SessionMissing.code)
})

test('an aborted turn withdraws its question', async t => {
  const { danger, asked, call, params } = await server(t)
  const control = new AbortController()
  const outcome = danger(control.signal)
  const approval_id = await asked()
  control.abort(new Error('over'))
  assert.match(String((await outcome)[0]?.result.output), /aborted/)
  assert.equal(
    (await call(resolveApproval, { params: { ...params, approval_id }, body: { decision: 'approved' } })).code,
    AlreadyResolved.code
  )
})

test('modes: yolo runs without asking, and the mode of the main agent reaches all agents', async t => {
  const { danger, permissions, agent } = await server(t)
  const child = agent.session.add('agent-0', { type: 'sub', parent_agent_id: 'main' })
  assert.equal(await permissions.mode(child), 'manual')
  await permissions.setMode(agent, 'yolo')
  assert.equal(await permissions.mode(child), 'yolo')
  assert.equal((await danger())[0]?.result.is_error, undefined)
  const late = agent.session.add('agent-1', { type: 'sub', parent_agent_id: 'main' })
  assert.equal(await permissions.mode(late), 'yolo')
})

test('of modes that are set in one instant the last one counts; who has none has that of its caller', async t => {
  const { permissions, agent } = await server(t, { now: () => new Date(0) })
  const child = agent.session.add('agent-0', { type: 'sub', parent_agent_id: 'main' })
  const grandchild = agent.session.add('agent-1', { type: 'sub', parent_agent_id: 'agent-0' })
  const modes = async () => await Promise.all([agent, child, grandchild].map(each => permissions.mode(each)))
  await permissions.setMode(agent, 'yolo')
  await permissions.setMode(child, 'manual')
  assert.deepEqual(await modes(), ['yolo', 'manual', 'manual'])
  await permissions.setMode(agent, 'auto')
  assert.deepEqual(await modes(), ['auto', 'auto', 'auto'])
})

test('what was approved for an agent counts for the agents it called', async t => {
  const { danger, permissions, agent } = await server(t)
  const child = agent.session.add('agent-0', { type: 'sub', parent_agent_id: 'main' })
  await permissions.remember(agent, { tool: 'Danger' })
  assert.equal((await danger(undefined, child))[0]?.result.is_error, undefined)
})

test('what was approved for the session on the request of a subagent counts for the main agent and for other subagents', async t => {
  const { danger, asked, call, params, agent } = await server(t)
  const child = (id: string, parent_agent_id: string) => agent.session.add(id, { type: 'sub', parent_agent_id })
  const asking = child('agent-1', child('agent-0', 'main').id)
  const outcome = danger(undefined, asking)
  const approval_id = await asked()
  await call(resolveApproval, { params: { ...params, approval_id }, body: { decision: 'approved', scope: 'session' } })
  assert.equal((await outcome)[0]?.result.is_error, undefined)

  for (const by of [agent, child('agent-2', 'main'), asking])
    assert.equal((await danger(undefined, by))[0]?.result.output, 'Danger ', 'not asked again')
})

test('what the user says to a subagent that was refused stands apart from what it is told to do', async t => {
  const { danger, asked, call, params, agent } = await server(t)
  const outcome = danger(undefined, agent.session.add('agent-0', { type: 'sub', parent_agent_id: 'main' }))
  const approval_id = await asked()
  await call(resolveApproval, { params: { ...params, approval_id }, body: { decision: 'rejected', feedback: 'use ls' } })
  const lines = String((await outcome)[0]?.result.output).split('\n')
  assert.equal(lines[0], 'The user rejected the call of Danger. Reason: use ls')
  assert.match(lines[1] ?? '', /^Try another way/)
})

test('without the interactions pack a call that needs an approval is denied', async t => {
  const { danger } = await server(t, { without: 'interactions' })
  const result = (await danger())[0]?.result
  assert.equal(result?.is_error, true)
  assert.match(String(result?.output), /nobody can be asked/)
})

test('unloading interactions withdraws what is open', async t => {
  const { danger, asked, kernel } = await server(t)
  const outcome = danger()
  await asked()
  await kernel.unload('interactions')
  assert.equal((await outcome)[0]?.result.is_error, true)
})

test('the tool list names the tools of a live session', async t => {
  const { call } = await server(t)
  const { data } = await call(listTools, { query: {} })
  assert.deepEqual(data?.tools, [{ name: 'Danger', description: 'Danger for tests', input_schema: null, source: 'builtin', active: true }])
  assert.deepEqual((await call(listTools, { query: { session_id: 'cold' } })).data?.tools, [])
  assert.equal((await call(listTools, { query: { session_id: '' } })).code, 40001)
})

test('rules and the default mode come from the configuration, and a change counts from the next call on', async t => {
  const toml = 'default_permission_mode = "yolo"\n[[permission.rules]]\ndecision = "deny"\npattern = "Dan*"\nreason = "house rule"\n'
  const { danger, permissions, agent, settings } = await server(t, { toml })
  assert.equal(await permissions.mode(agent), 'yolo')
  assert.match(String((await danger())[0]?.result.output), /forbids this call of Danger\. Reason: house rule/)
  await settings.patch({ permission: { rules: [] } })
  assert.equal((await danger())[0]?.result.is_error, undefined)
  await assert.rejects(settings.patch({ permission: { rules: [{ decision: 'deny', pattern: '(broken' }] } }))
})

test('a tool switched off in the configuration is shown as inactive and refused', async t => {
  const { danger, call } = await server(t, { toml: '[tools]\ndisabled = ["Danger"]\n' })
  assert.equal((await call(listTools, { query: {} })).data?.tools[0]?.active, false)
  assert.match(String((await danger())[0]?.result.output), /switched off/)
})

test('while the configuration as a whole cannot be read, nothing goes unasked', async t => {
  const { danger, asked, call, params, permissions, agent, home, settings } = await server(t, { toml: '[permission' })
  await permissions.setMode(agent, 'yolo')
  const outcome = danger()
  await call(resolveApproval, { params: { ...params, approval_id: await asked() }, body: { decision: 'approved' } })
  assert.equal((await outcome)[0]?.result.is_error, undefined)
  await writeFile(join(home, 'config.toml'), '')
  await settings.update(file => {
    file.telemetry = false
  })
  assert.equal((await danger())[0]?.result.output, 'Danger ', 'the file is good again: yolo does not ask')
})

test('a file that breaks after the start leaves its last good rules in force, also for the first call', async t => {
  const { danger, asked, home, settings } = await server(t, { toml: 'default_permission_mode = "yolo"\n' })

  await writeFile(join(home, 'config.toml'), '[permission')
  await settings.reload()
  const first = await Promise.race([danger(), asked()])

  assert.notEqual(settings.diagnostics().length, 0)
  assert.ok(Array.isArray(first), 'yolo does not ask')
})
