import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { compactSession } from '../../../features/compaction/index.ts'
import compaction from '../../../features/compaction/pack.ts'
import { patchConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import interactions from '../../../features/interactions/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import permissions from '../../../features/permissions/pack.ts'
import { abortSession, listPrompts, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { archiveSession, createSession, readSession, restoreSession, updateProfile } from '../../../features/sessions/index.ts'
import subagents from '../../../features/subagents/pack.ts'
import tasks from '../../../features/tasks/pack.ts'
import { ToolHooks } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import type { Shell } from '../../../features/tools-shell/index.ts'
import toolsShell from '../../../features/tools-shell/pack.ts'
import { answerOf } from '../../../features/user-hooks/answer.ts'
import userHooks from '../../../features/user-hooks/pack.ts'
import { HookRules } from '../../../features/user-hooks/rules.ts'
import { type HookCall, HookRunner } from '../../../features/user-hooks/runner.ts'
import { definePack } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { type ScriptedLlm, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { type Started, startAgent } from '../agent/start.ts'
import { silent } from '../tools/fakes.ts'

interface Rule {
  readonly event: string
  readonly command: string
  readonly matcher?: string
  readonly timeout?: number
}

const everything = [config, tools, toolsShell, permissions, userHooks]

/** A server whose configuration has these hooks and lets every tool run. */
async function start(t: TestContextLike, llm: ScriptedLlm, rules: readonly Rule[], packs = everything): Promise<Started> {
  const home = await freshDir()
  const toml = rules.flatMap(rule => ['[[hooks]]', ...Object.entries(rule).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)])
  await writeFile(join(home, 'config.toml'), ['default_permission_mode = "auto"', ...toml, ''].join('\n'))
  return startAgent(t, llm, { home, packs })
}

const bash = (command: string) => toolCalls({ id: 'one', name: 'Bash', args: { command } })
const of = (agent: Started, type: string) =>
  agent.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
/** What the model was last told, as text. */
const lastSeen = (llm: ScriptedLlm) => JSON.stringify(llm.requests.at(-1)?.messages.at(-1))

const heardIn = async (log: string) =>
  (await readFile(log, 'utf8'))
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))

test('a hook that exits with 2 blocks a prompt: no turn, the reason is in the conversation and the session is idle', async t => {
  const llm = scriptedLlm('never asked')
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', matcher: 'secret', command: 'echo "no secrets" >&2; exit 2' }])
  const params = { session_id: agent.session_id }

  const { status, prompt_id } = await agent.prompt('the secret plan')

  assert.equal(status, 'blocked')
  assert.equal(llm.requests.length, 0)
  const { items } = (await agent.call(listMessages, { params })).data
  assert.deepEqual(
    items.map(({ role, content }) => [role, content]),
    [
      ['assistant', [{ type: 'text', text: 'no secrets' }]],
      ['user', [{ type: 'text', text: 'the secret plan' }]]
    ]
  )
  assert.deepEqual(of(agent, 'hook.result'), [{ hookEvent: 'UserPromptSubmit', content: 'no secrets', blocked: true }])
  assert.deepEqual(
    of(agent, 'prompt.completed').map(({ promptId, reason }) => [promptId, reason]),
    [[prompt_id, 'blocked']]
  )
  assert.equal(of(agent, 'turn.started').length, 0)
  const session = (await agent.call(readSession, { params })).data
  assert.deepEqual([session.busy, session.last_turn_reason], [false, 'failed'])
  assert.deepEqual((await agent.call(listPrompts, { params })).data, { active: null, queued: [] })
})

test('what the end of a command means: 0 allows and may say something, 2 blocks, all else has no say', () => {
  const specific = (fields: object, more: object = {}) => JSON.stringify({ ...more, hookSpecificOutput: fields })
  const cases: readonly (readonly [code: number, stdout: string, stderr: string, answer: object])[] = [
    [0, '', '', {}],
    [0, ' text \n', 'noise', { message: 'text' }],
    [0, '{ no json', '', { message: '{ no json' }],
    [0, '{ "branch": "main" }\n', '', { message: '{ "branch": "main" }' }],
    [0, '{}', '', {}],
    [0, specific({ additionalContext: 'more' }), '', { message: 'more' }],
    [0, specific({ message: 'inner' }, { message: 'outer' }), '', { message: 'inner' }],
    [0, specific({ updatedInput: { a: 1 } }, { message: 'outer' }), '', { message: 'outer', input: { a: 1 } }],
    [0, specific({ permissionDecision: 'deny', message: 'why' }), '', { block: 'why' }],
    [0, specific({ permissionDecision: 'deny', permissionDecisionReason: 'so', message: 'why' }), '', { block: 'so' }],
    [2, specific({ message: 'not heard' }), ' never \n', { block: 'never' }],
    [2, '', ' \n', { block: 'A hook blocked it and gave no reason.' }],
    [0, specific({ permissionDecision: 'deny' }), '', { block: 'A hook denied it and gave no reason.' }],
    [1, specific({ permissionDecision: 'deny' }), 'failed', {}]
  ]
  for (const [code, stdout, stderr, answer] of cases)
    assert.deepEqual(answerOf({ code, stdout, stderr }, 'PreToolUse'), answer, stdout || stderr)
})

test('of what a command says 50,000 characters reach the model, with a sentence that it was cut', () => {
  const long = 'x'.repeat(1_000_000)
  const cut = `${'x'.repeat(50_000)}\n[...truncated]\nThe output was too long and has been cut.`
  const denied = { hookSpecificOutput: { permissionDecision: 'deny', permissionDecisionReason: long } }
  assert.deepEqual(answerOf({ code: 0, stdout: long, stderr: '' }, 'PreToolUse'), { message: cut })
  assert.deepEqual(answerOf({ code: 0, stdout: JSON.stringify({ message: long }), stderr: '' }, 'PreToolUse'), { message: cut })
  assert.deepEqual(answerOf({ code: 2, stdout: '', stderr: long }, 'PreToolUse'), { block: cut })
  assert.deepEqual(answerOf({ code: 0, stdout: JSON.stringify(denied), stderr: '' }, 'PreToolUse'), { block: cut })
  const whole = 'x'.repeat(50_000)
  assert.deepEqual(answerOf({ code: 0, stdout: whole, stderr: '' }, 'PreToolUse'), { message: whole })
})

test('a prompt that no hook blocks runs, with what the hooks said behind it', async t => {
  const llm = scriptedLlm('done')
  const agent = await start(t, llm, [
    { event: 'UserPromptSubmit', command: `cat > asked.json; echo '{"message":"mind the gap"}'` },
    { event: 'UserPromptSubmit', command: 'exit 1' },
    { event: 'UserPromptSubmit', matcher: '(', command: 'exit 2' }
  ])

  assert.equal((await agent.prompt('go on')).status, 'running')
  await agent.settled(1)

  assert.deepEqual(
    llm.requests[0]?.messages.slice(0, 2).map(({ content }) => content),
    [[{ type: 'text', text: 'go on' }], [{ type: 'text', text: '<hook_result event="UserPromptSubmit">\nmind the gap\n</hook_result>' }]],
    'the model is told that the user did not write it'
  )
  const { hook_event_name, session_id, cwd, prompt, is_steer } = JSON.parse(await readFile(join(agent.cwd, 'asked.json'), 'utf8'))
  assert.deepEqual(
    { hook_event_name, session_id, cwd, prompt, is_steer },
    { hook_event_name: 'UserPromptSubmit', session_id: agent.session_id, cwd: agent.cwd, prompt: 'go on', is_steer: false }
  )
  assert.deepEqual(of(agent, 'hook.result'), [{ turnId: 0, hookEvent: 'UserPromptSubmit', content: 'mind the gap' }])
})

test('a queued prompt is asked about when its turn comes, and the next one runs when it is blocked', async t => {
  const more = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: more.opened },
      { type: 'text', text: 'a' },
      { type: 'finish', reason: 'completed' }
    ],
    'b'
  )
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', matcher: 'bad', command: 'exit 2' }])
  await agent.prompt('one')
  await llm.arrived(0)
  assert.equal((await agent.prompt('bad two')).status, 'queued')
  assert.equal((await agent.prompt('three')).status, 'queued')

  more.open()
  await agent.settled(3)

  assert.deepEqual(
    of(agent, 'prompt.completed').map(({ reason }) => reason),
    ['completed', 'blocked', 'completed']
  )
  assert.equal(llm.requests.length, 2)
})

test('a prompt that is steered into the running turn is asked about, too', async t => {
  const more = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: more.opened },
      { type: 'text', text: 'a' },
      { type: 'finish', reason: 'completed' }
    ],
    'b'
  )
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', matcher: 'bad', command: 'grep -q \'"is_steer":true\' && exit 2' }])
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await llm.arrived(0)
  const { prompt_id } = await agent.prompt('bad two')

  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })).code, 40402)

  assert.deepEqual(
    of(agent, 'prompt.completed').map(({ promptId, reason }) => [promptId, reason]),
    [[prompt_id, 'blocked']]
  )
  const { busy, main_turn_active, last_turn_reason } = (await agent.call(readSession, { params })).data
  assert.deepEqual([busy, main_turn_active, last_turn_reason], [true, true, undefined], 'the turn goes on')
  const heard = of(agent, 'event.session.work_changed').at(-1)
  assert.deepEqual([heard?.busy, heard?.main_turn_active, heard?.last_turn_reason], [true, true, undefined])
  more.open()
  await agent.settled(2)
  assert.equal(llm.requests.length, 1)
  await agent.prompt('three')
  await agent.settled(3)
  const texts = llm.requests[1]?.messages.map(
    ({ role, content }) => `${role}: ${content.map(part => (part.type === 'text' ? part.text : ''))}`
  )
  assert.deepEqual(
    texts?.filter(text => !text.includes('system-reminder')),
    ['user: one', 'assistant: a', 'user: three']
  )
})

test('the model gets nothing of a prompt that was blocked while a call ran, nor of one that was blocked before', async t => {
  const llm = scriptedLlm(bash('until test -e go; do sleep 0.02; done'), 'done')
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', matcher: 'bad', command: 'echo no >&2; exit 2' }])
  const params = { session_id: agent.session_id }
  await agent.prompt('a bad beginning')
  await agent.prompt('one', { permission_mode: 'yolo' })
  await agent.waitFor(({ type }) => type === 'tool.call.started')
  const { prompt_id } = await agent.prompt('a bad addition')
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })).code, 40402)
  await writeFile(join(agent.cwd, 'go'), '')
  await agent.settled(3)

  assert.deepEqual(
    llm.requests[1]?.messages.map(({ role }) => role).filter((role, at, all) => role !== 'user' || all[at - 1] !== 'user'),
    ['user', 'assistant', 'tool']
  )
  assert.ok(llm.requests.every(({ messages }) => !JSON.stringify(messages).includes('bad')))
  const { items } = (await agent.call(listMessages, { params })).data
  assert.ok(JSON.stringify(items).includes('a bad beginning') && JSON.stringify(items).includes('a bad addition'))
})

test('a hook denies a tool call, another one changes its arguments', async t => {
  const llm = scriptedLlm(bash('rm file'), bash('echo old'), 'done')
  const agent = await start(t, llm, [
    { event: 'PreToolUse', matcher: 'Bash', command: 'grep -q "rm file" && { echo "never rm" >&2; exit 2; } || true' },
    {
      event: 'PreToolUse',
      matcher: '^Bash$',
      command: `grep -q "echo old" && echo '{"hookSpecificOutput":{"updatedInput":{"command":"echo new"}}}'`
    }
  ])
  await agent.prompt('go')
  await agent.settled(1)

  const results = of(agent, 'tool.result')
  assert.match(String(results[0]?.output), /never rm/)
  assert.equal(results[0]?.isError, true)
  assert.equal(results[1]?.output, 'new')
  assert.match(lastSeen(llm), /changed by user-hooks to \{[^}]*\}\. A hook of the user asked for that\./)
})

test('guards that look at what a call would do see what a hook made of it', async t => {
  const seen: unknown[] = []
  const guard = definePack({
    name: 'guard',
    needs: { hooks: ToolHooks },
    setup: (ctx, { hooks }) => void ctx.tap(hooks.before, ({ args }) => void seen.push(args), { stage: -100 })
  })
  const rewrite = `echo '{"hookSpecificOutput":{"updatedInput":{"command":"echo new"}}}'`
  const agent = await start(t, scriptedLlm(bash('echo old'), 'done'), [{ event: 'PreToolUse', command: rewrite }], [...everything, guard])
  await agent.prompt('go')
  await agent.settled(1)

  assert.deepEqual(seen, [{ command: 'echo new' }])
})

test('a subagent is asked about neither at its prompt nor at its end', async t => {
  const log = join(await freshDir(), 'heard')
  const rules = ['UserPromptSubmit', 'Stop', 'SubagentStop'].map(event => ({ event, command: `cat >> ${log}` }))
  const args = { prompt: 'look', description: 'a look', subagent_type: 'explore' }
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Agent', args }), 'a long answer '.repeat(20), 'done')
  const agent = await start(t, llm, rules, [...everything, tasks, subagents])
  await agent.prompt('go')
  await agent.settled(2)
  await agent.kernel.stop()

  const heard = (await readFile(log, 'utf8')).trimEnd().split('\n')
  assert.deepEqual(heard.map(line => JSON.parse(line).hook_event_name).sort(), ['Stop', 'SubagentStop', 'UserPromptSubmit'])
})

test('a Stop hook keeps a turn going once, with its reason', async t => {
  const llm = scriptedLlm('finished', 'really')
  const agent = await start(t, llm, [{ event: 'Stop', command: 'echo "run the tests" >&2; exit 2' }])
  await agent.prompt('go')
  await agent.settled(1)

  assert.equal(llm.requests.length, 2)
  assert.match(lastSeen(llm), /run the tests/)
})

test('a Stop hook without a reason tells the model to look whether something is left', async t => {
  const llm = scriptedLlm('finished', 'really')
  const agent = await start(t, llm, [{ event: 'Stop', command: 'exit 2' }])
  await agent.prompt('go')
  await agent.settled(1)

  assert.equal(llm.requests.length, 2)
  assert.match(lastSeen(llm), /does not let the turn end here, and gave no reason/)
})

test('an abort while a Stop hook is asked ends the hook and the turn, and nothing goes on with it', async t => {
  const llm = scriptedLlm('finished', 'never asked')
  const asked = join(await freshDir(), 'asked')
  execFileSync('mkfifo', [asked])
  const agent = await start(t, llm, [
    { event: 'Stop', command: `trap 'echo "once more" >&2; exit 2' TERM; echo > ${asked}; while true; do sleep 0.01; done`, timeout: 600 }
  ])
  const params = { session_id: agent.session_id }
  await agent.prompt('go')
  await readFile(asked)

  assert.deepEqual((await agent.call(abortSession, { params })).data, { aborted: true })
  await agent.waitFor(event => event.type === 'prompt.aborted')

  assert.equal(of(agent, 'turn.ended').at(-1)?.reason, 'cancelled')
  assert.equal(llm.requests.length, 1)
  const { items } = (await agent.call(listMessages, { params, query: { role: 'user' } })).data
  assert.ok(!JSON.stringify(items).includes('once more'), JSON.stringify(items))
})

test('a Stop hook that has nothing against it ends the turn, whatever it says', async t => {
  const llm = scriptedLlm('finished', 'never asked')
  const agent = await start(t, llm, [{ event: 'Stop', command: 'echo fine' }])
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(llm.requests.length, 1)
})

test('what is decided by a hook is refused when no pack can run it', async t => {
  const llm = scriptedLlm('never asked')
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', command: 'true' }], [config, tools, permissions, userHooks])
  assert.equal((await agent.prompt('go')).status, 'blocked')
})

test('a hook that takes too long has no say', async t => {
  const llm = scriptedLlm('done')
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', timeout: 1, command: 'sleep 60; exit 2' }])
  assert.equal((await agent.prompt('go')).status, 'running')
  await agent.settled(1)
})

test('a change of the configuration counts for the next prompt', async t => {
  const llm = scriptedLlm('done', 'done', 'done')
  const agent = await start(t, llm, [])
  await agent.prompt('one')
  await agent.settled(1)

  await agent.call(patchConfig, { body: { hooks: [{ event: 'UserPromptSubmit', command: 'exit 2' }] } })
  assert.equal((await agent.prompt('two')).status, 'blocked')
  await agent.call(patchConfig, { body: { hooks: [] } })
  assert.equal((await agent.prompt('three')).status, 'running')
  await agent.settled(3)
  await agent.call(patchConfig, { body: { hooks: [{ event: 'UserPromptSubmit', command: 'echo >> asked; echo hi' }] } })
  assert.equal((await agent.prompt('four')).status, 'running')
  await agent.settled(4)
  assert.equal(await readFile(join(agent.cwd, 'asked'), 'utf8'), '\n', 'asked once')
})

test('hooks hear of what happens, also of the end of the server', async t => {
  const log = join(await freshDir(), 'heard')
  const heard = (event: string) => ({ event, command: `cat >> ${log}` })
  const events = ['SessionStart', 'TurnStarted', 'PostToolUse', 'PostToolUseFailure', 'SessionEnd', 'UserPromptQueued']
  const llm = scriptedLlm(
    toolCalls(
      { id: 'a', name: 'Bash', args: { command: 'echo hi' } },
      { id: 'b', name: 'Bash', args: { command: 'printf %03000d 0; exit 3' } }
    ),
    'done'
  )
  const agent = await start(t, llm, events.map(heard))
  await agent.prompt('go')
  await agent.settled(1)
  await agent.kernel.stop()

  const lines = await heardIn(log)
  assert.deepEqual(lines.map(({ hook_event_name }) => hook_event_name).sort(), [
    'PostToolUse',
    'PostToolUseFailure',
    'SessionEnd',
    'SessionStart',
    'TurnStarted'
  ])
  const used = lines.find(({ hook_event_name }) => hook_event_name === 'PostToolUse')
  assert.deepEqual([used.tool_name, used.tool_input, used.tool_output], ['Bash', { command: 'echo hi' }, 'hi'])
  const failed = lines.find(({ hook_event_name }) => hook_event_name === 'PostToolUseFailure')
  assert.deepEqual([failed.tool_output, failed.error], ['0'.repeat(2_000), { message: failed.tool_output }])
  assert.equal(lines.find(({ hook_event_name }) => hook_event_name === 'TurnStarted').origin_kind, 'user')
})

test('hooks hear of a call that is not understood: no such tool, arguments that do not fit', async t => {
  const log = join(await freshDir(), 'heard')
  const events = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure']
  const calls = toolCalls({ id: 'a', name: 'Nope', args: { x: 1 } }, { id: 'b', name: 'Bash', args: { bogus: 1 } })
  const agent = await start(
    t,
    scriptedLlm(calls, 'done'),
    events.map(event => ({ event, command: `cat >> ${log}` }))
  )
  await agent.prompt('go')
  await agent.settled(1)
  await agent.kernel.stop()

  const told = (await heardIn(log)).sort((a, b) => (a.tool_call_id < b.tool_call_id ? -1 : 1))
  assert.deepEqual(
    told.map(({ hook_event_name, tool_name, tool_input }) => [hook_event_name, tool_name, tool_input]),
    [
      ['PostToolUseFailure', 'Nope', { x: 1 }],
      ['PostToolUseFailure', 'Bash', { bogus: 1 }]
    ]
  )
  assert.match(told[0].error.message, /Tool not found/)
  assert.match(told[1].error.message, /Invalid arguments/)
})

test('a session that was there before is resumed; one that is archived does not begin again', async t => {
  const log = join(await freshDir(), 'heard')
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), `[[hooks]]\nevent = "SessionStart"\ncommand = "cat >> ${log}"\n`)
  const first = await startAgent(t, scriptedLlm('done', 'done'), { home, packs: everything })
  await first.prompt('go')
  await first.settled(1)
  const { session_id } = first
  const other = (await first.call(createSession, { body: { metadata: { cwd: first.cwd } } })).data.id
  await first.call(submitPrompt, { params: { session_id: other }, body: { content: [{ type: 'text', text: 'go' }] } })
  await first.waitFor(event => event.type === 'prompt.completed' && event.session_id === other)
  await first.call(archiveSession, { params: { session_id: other } })
  await first.kernel.stop()

  const second = await startAgent(t, scriptedLlm(), { home, packs: everything, session_id })
  for (const id of [session_id, other]) assert.equal((await second.call(listMessages, { params: { session_id: id } })).code, 0)
  await second.kernel.stop()

  const told = (await readFile(log, 'utf8')).trimEnd().split('\n')
  const facts = told.map(line => JSON.parse(line))
  assert.deepEqual(
    facts.map(({ model, profile }) => [typeof model, profile]),
    facts.map(() => ['string', 'agent'])
  )
  const starts = facts.map(fact => [fact.session_id, fact.source])
  assert.deepEqual(
    starts.filter(([id]) => id === session_id),
    [
      [session_id, 'startup'],
      [session_id, 'resume']
    ]
  )
  assert.deepEqual(
    starts.filter(([id]) => id === other),
    [[other, 'startup']]
  )
})

test('a turn that ran into its limit of steps failed', async t => {
  const log = join(await freshDir(), 'heard')
  const agent = await start(t, scriptedLlm(bash('true'), 'more'), [
    { event: 'StopFailure', matcher: 'max_steps', command: `cat >> ${log}` }
  ])
  await agent.call(patchConfig, { body: { loop_control: { max_steps_per_turn: 1 } } })
  await agent.prompt('go')
  await agent.settled(1)
  await agent.kernel.stop()

  assert.match(JSON.parse(await readFile(log, 'utf8')).error_type, /max_steps/)
})

test('the end of an archived session is told once', async t => {
  const log = join(await freshDir(), 'heard')
  const agent = await start(t, scriptedLlm('done'), [{ event: 'SessionEnd', command: `cat >> ${log}` }])
  const request = { params: { session_id: agent.session_id } }
  assert.equal((await agent.call(archiveSession, request)).code, 0)
  assert.equal((await agent.call(archiveSession, request)).code, 0)
  await agent.kernel.stop()

  const reasons = (await readFile(log, 'utf8'))
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).reason)
  assert.deepEqual(reasons, ['archive'])
})

test('a session that is restored starts again, also one that was archived before this server came', async t => {
  const log = join(await freshDir(), 'heard')
  const home = await freshDir()
  const rules = ['SessionStart', 'SessionEnd'].map(event => `[[hooks]]\nevent = "${event}"\ncommand = "cat >> ${log}"\n`)
  await writeFile(join(home, 'config.toml'), rules.join('\n'))
  const first = await startAgent(t, scriptedLlm('done'), { home, packs: everything })
  await first.prompt('go')
  await first.settled(1)
  const { session_id } = first
  const request = { params: { session_id } }
  await first.call(archiveSession, request)
  await first.call(restoreSession, request)
  assert.equal((await first.call(restoreSession, request)).code, 0)
  await first.call(archiveSession, request)
  await first.kernel.stop()
  const second = await startAgent(t, scriptedLlm(), { home, packs: everything, session_id })
  await second.call(restoreSession, request)
  await second.kernel.stop()

  const told = (await heardIn(log)).map(({ source, reason }) => source ?? reason)
  assert.deepEqual(told.toSorted(), ['archive', 'archive', 'exit', 'resume', 'resume', 'startup'])
})

test('hooks hear what is waiting: a prompt behind another one, and a call that is to be approved', async t => {
  const log = join(await freshDir(), 'heard')
  const rules = ['UserPromptQueued', 'PermissionRequest', 'PermissionResult', 'Interrupt'].map(event => ({
    event,
    command: `cat >> ${log}`
  }))
  const agent = await start(t, scriptedLlm(bash('echo hi'), 'done'), rules, [...everything, interactions])
  const params = { session_id: agent.session_id }
  await agent.call(updateProfile, { params, body: { agent_config: { permission_mode: 'manual' } } })
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'event.approval.requested')
  await agent.prompt('then')
  await agent.call(abortSession, { params })
  await agent.settled(2)
  await agent.kernel.stop()

  const lines = await heardIn(log)
  const told = Object.fromEntries(lines.map(({ hook_event_name, ...facts }) => [hook_event_name, facts]))
  assert.deepEqual([told.UserPromptQueued.prompt, told.UserPromptQueued.queue_length], ['then', 1])
  const { agent_id, turn_id, tool_call_id, tool_name, display } = told.PermissionRequest
  assert.deepEqual([agent_id, turn_id, tool_call_id, tool_name, display.command], ['main', 0, 'one', 'Bash', 'echo hi'])
  for (const facts of [told.PermissionRequest, told.PermissionResult])
    assert.deepEqual([facts.tool_input, facts.id], [{ command: 'echo hi' }, facts.approval_id])
  const { decision, action } = told.PermissionResult
  assert.deepEqual([decision, action, told.Interrupt.reason], ['cancelled', told.PermissionRequest.action, 'cancelled'])
})

test('of queued prompts and turns those hooks hear whose matcher fits the text, or why there is a turn', async t => {
  const log = join(await freshDir(), 'heard')
  const rule = (event: string, matcher: string) => ({ event, matcher, command: `cat >> ${log}` })
  const rules = ['then', 'else'].map(text => rule('UserPromptQueued', text)).concat(['user', 'task'].map(kind => rule('TurnStarted', kind)))
  const working = latch()
  t.after(() => working.open())
  const agent = await start(t, scriptedLlm([{ type: 'wait', until: working.opened }], 'done'), rules)
  await agent.prompt('go')
  await agent.prompt('then')
  working.open()
  await agent.settled(2)
  await agent.kernel.stop()

  const told = (await heardIn(log)).map(({ hook_event_name, prompt }) => [hook_event_name, prompt])
  assert.deepEqual(told.sort(), [
    ['TurnStarted', 'go'],
    ['TurnStarted', 'then'],
    ['UserPromptQueued', 'then']
  ])
})

test('hooks hear of subagents, tasks and their ends', async t => {
  const log = join(await freshDir(), 'heard')
  const events = ['SubagentStart', 'SubagentStop', 'TaskStarted', 'Notification']
  const rules = events.map(event => ({ event, command: `cat >> ${log}` }))
  const args = { prompt: 'look', description: 'a look', subagent_type: 'explore', run_in_background: true }
  const llm = scriptedLlm(({ messages }) => {
    const text = JSON.stringify(messages)
    if (text.includes('notification')) return 'seen'
    if (text.includes('"look"')) return 'a long answer '.repeat(20)
    return text.includes('automatic_notification') ? 'going on' : toolCalls({ id: 'a', name: 'Agent', args })
  })
  const agent = await start(t, llm, rules, [...everything, tasks, subagents])
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'task.terminated')
  await agent.kernel.stop()

  const lines = await heardIn(log)
  const told = Object.fromEntries(lines.map(({ hook_event_name, ...facts }) => [hook_event_name, facts]))
  assert.deepEqual(Object.keys(told).sort(), events.sort())
  assert.deepEqual(
    [told.SubagentStart.agent_name, told.SubagentStop.status, told.Notification.notification_type],
    ['explore', 'completed', 'task.completed']
  )
  const { agent_id, title, body, severity } = told.Notification
  assert.deepEqual([agent_id, title, body, severity], ['main', 'Background task completed', 'a look', 'info'])
  assert.equal(told.SubagentStart.prompt, 'look')
  assert.deepEqual([told.Notification.source_kind, told.Notification.source_id], ['background_task', told.TaskStarted.task_id])
  const { detached, kind, status, started_at } = told.TaskStarted
  assert.deepEqual([detached, kind, status, typeof started_at], [true, told.TaskStarted.task_kind, 'running', 'number'])
})

test('hooks hear that an agent was ended by the abort of the turn that waited for it', async t => {
  const log = join(await freshDir(), 'heard')
  const [working, held] = [latch(), latch()]
  t.after(() => held.open())
  const args = { prompt: 'look', description: 'a look', subagent_type: 'explore' }
  const llm = scriptedLlm(({ messages }) => {
    if (!JSON.stringify(messages).includes('"look"')) return toolCalls({ id: 'a', name: 'Agent', args })
    working.open()
    return [{ type: 'wait', until: held.opened }]
  })
  const agent = await start(t, llm, [{ event: 'SubagentStop', command: `cat >> ${log}` }], [...everything, tasks, subagents])
  await agent.prompt('go')
  await working.opened
  await agent.call(abortSession, { params: { session_id: agent.session_id } })
  await agent.waitFor(event => event.type === 'prompt.aborted')
  await agent.kernel.stop()

  const { agent_id, agent_name, status } = JSON.parse(await readFile(log, 'utf8'))
  assert.deepEqual([agent_id, agent_name, status], ['agent-0', 'explore', 'cancelled'])
})

test('hooks hear before and after the context is made smaller', async t => {
  const log = join(await freshDir(), 'heard')
  const heard = (event: string, matcher: string) => ({ event, matcher, command: `cat >> ${log}` })
  const rules = ['PreCompact', 'PostCompact'].flatMap(event => [heard(event, 'manual'), heard(event, 'auto')])
  const agent = await start(t, scriptedLlm('answer'), rules, [...everything, compaction])
  await agent.prompt('go')
  await agent.settled(1)
  await agent.call(compactSession, { params: { session_id: agent.session_id }, body: { instruction: 'mind it' } })
  await agent.waitFor(({ type }) => type === 'compaction.completed')
  await agent.kernel.stop()

  // Two programs that run side by side.
  const lines = (await heardIn(log)).sort((a, b) => (a.hook_event_name < b.hook_event_name ? 1 : -1))
  assert.deepEqual(
    lines.map(({ hook_event_name, trigger, instruction }) => [hook_event_name, trigger, instruction]),
    [
      ['PreCompact', 'manual', 'mind it'],
      ['PostCompact', 'manual', undefined]
    ]
  )
  assert.ok(lines[0].token_count > 0)
  assert.equal(lines[1].estimated_token_count, lines[1].tokens_after)
})

test('an abort of the session while a hook is asked ends the prompt that it is asked about', async t => {
  const llm = scriptedLlm('never asked')
  const agent = await start(t, llm, [{ event: 'UserPromptSubmit', command: 'touch asked; sleep 60' }])
  const params = { session_id: agent.session_id }
  const sent = agent.prompt('go')
  await agent.waitFor(event => event.type === 'prompt.submitted')

  assert.deepEqual((await agent.call(abortSession, { params })).data, { aborted: true })

  assert.equal((await sent).status, 'queued')
  assert.equal(of(agent, 'prompt.aborted').length, 1)
  assert.deepEqual((await agent.call(listPrompts, { params })).data, { active: null, queued: [] })
  assert.equal(llm.requests.length, 0)
})

test('what waits for slow hooks is told, also when hooks that it stood behind are gone by then', async () => {
  const [begins, ends] = (['TurnStarted', 'TaskStarted'] as const).map(event => ({ event, command: event }))
  let read = [begins!, ends!]
  const rules = new HookRules(() => read, silent)
  const gate = latch()
  const ran: string[] = []
  const run = async ({ command }: { readonly command: string }) => {
    ran.push(command)
    await gate.opened
    return { code: 0, stdout: '', stderr: '' }
  }
  const runner = new HookRunner({ rules, shell: () => ({ run }) as unknown as Shell, log: silent })
  const session = { id: 's', cwd: '/', state: { title: '' } } as unknown as HookCall['session']
  const tell = (event: HookCall['event'], count: number) => {
    for (let n = 0; n < count; n++) runner.tell({ event, session })
  }
  tell('TurnStarted', 16)
  tell('TaskStarted', 20)
  tell('TurnStarted', 1)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(ran.length, 16, 'so many run at a time')
  read = [begins!]
  rules.refresh()
  gate.open()
  await runner.settled()
  assert.equal(ran.filter(command => command === 'TurnStarted').length, 17)
})

test('of those that wait for slow hooks the oldest are left out when they are too many', async () => {
  const rules = new HookRules(() => [{ event: 'TurnStarted', command: 'run' }], silent)
  const gate = latch()
  const ran: number[] = []
  const run = async ({ input = '' }: { readonly input?: string }) => {
    ran.push(JSON.parse(input).n)
    await gate.opened
    return { code: 0, stdout: '', stderr: '' }
  }
  const runner = new HookRunner({ rules, shell: () => ({ run }) as unknown as Shell, log: silent })
  const session = { id: 's', cwd: '/', state: { title: '' } } as unknown as HookCall['session']
  for (let n = 0; n < 300; n++) runner.tell({ event: 'TurnStarted', session, fields: { n } })
  gate.open()
  await runner.settled()

  assert.deepEqual(ran, [...Array.from({ length: 16 }, (_, n) => n), ...Array.from({ length: 256 }, (_, n) => n + 44)])
})

test('what a rule says of time, place and environment reaches its command, and so does the signal of who asks', async () => {
  const rules = [
    { event: 'Stop', command: 'plain' },
    { event: 'Stop', command: 'own', timeout: 5, cwd: '/elsewhere', env: { A: 'b' } }
  ] as const
  const ran: object[] = []
  const run = async ({ command, cwd, env, timeout_ms, signal }: Record<string, unknown>) => {
    ran.push({ command, cwd, env, timeout_ms, signal })
    return { code: 0, stdout: '', stderr: '' }
  }
  const runner = new HookRunner({ rules: new HookRules(() => rules, silent), shell: () => ({ run }) as unknown as Shell, log: silent })
  const session = { id: 's', cwd: '/', state: { title: '' } } as unknown as HookCall['session']
  const { signal } = new AbortController()

  await runner.ask({ event: 'Stop', session, signal })

  assert.deepEqual(ran, [
    { command: 'plain', cwd: '/', env: undefined, timeout_ms: 30_000, signal },
    { command: 'own', cwd: '/elsewhere', env: { A: 'b' }, timeout_ms: 5_000, signal }
  ])
})

test('of rules with one command in one directory the first runs, also when one of them names the directory', () => {
  const rules = new HookRules(
    () => [
      { event: 'Stop', command: 'a' },
      { event: 'Stop', command: 'a', cwd: '/there' },
      { event: 'Stop', command: 'a', cwd: '/here' }
    ],
    silent
  )
  assert.deepEqual(
    rules.matching('Stop', '', '/here').map(({ cwd }) => cwd),
    [undefined, '/there']
  )
})
