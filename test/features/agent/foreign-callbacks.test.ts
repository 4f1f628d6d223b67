import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnHookCalls } from '../../../features/agent/hook-calls.ts'
import { createTurnHooks } from '../../../features/agent/hooks.ts'
import { PromptBlocks, StatusFacts, StepInjectors, TurnHooks, turnStarted } from '../../../features/agent/index.ts'
import { factsOf } from '../../../features/agent/status-facts.ts'
import { waited } from '../../../features/agent/waited.ts'
import { listPrompts } from '../../../features/prompts/index.ts'
import { type AgentHost, readSession } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { echoRunner, startAgent } from './start.ts'

const broken = (): never => {
  throw new Error('broken on purpose')
}

test('an injector that fails is left out and put down to its pack: the turn goes on, and the others still speak', async t => {
  const logged: string[] = []
  const pack = definePack({
    name: 'other',
    setup(ctx) {
      ctx.contribute(StepInjectors, { variant: 'broken', inject: broken })
      ctx.contribute(StepInjectors, { variant: 'late', inject: async () => broken() })
      ctx.contribute(StepInjectors, { variant: 'sound', inject: () => ({ text: 'the sound one' }) })
    }
  })
  const llm = scriptedLlm('answer')
  const agent = await startAgent(t, llm, { packs: [pack], logged })

  await agent.prompt('go')
  await agent.settled(1)

  assert.equal(ending(agent.events).reason, 'completed')
  assert.match(JSON.stringify(llm.requests[0]?.messages), /the sound one/)
  const failures = logged.map(line => JSON.parse(line) as { pack?: string; msg: string })
  assert.deepEqual(
    failures.map(({ pack, msg }) => [pack, msg]),
    [
      ['other', 'injector broken failed'],
      ['other', 'injector late failed']
    ]
  )
})

test('what packs contribute to prompt, status and steps counts as their fault when it fails, and nobody else has one', async t => {
  const pack = definePack({
    name: 'other',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.contribute(PromptBlocks, { name: 'rules', order: 700, render: broken })
      ctx.contribute(StatusFacts, { field: 'mood', value: broken })
      ctx.contribute(StepInjectors, { variant: 'hint', inject: broken })
      ctx.tap(hooks.beforeStep, async () => broken())
    }
  })
  const logged: string[] = []
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [pack], logged })

  await agent.prompt('go')
  await agent.settled(1)

  const said = new Set(logged.map(line => JSON.parse(line) as { msg: string; pack?: string }).map(line => `${line.pack}: ${line.msg}`))
  const expected = ['prompt block rules', 'status fact mood', 'injector hint', 'tap of beforeStep'].map(what => `other: ${what} failed`)
  assert.deepEqual([...said].sort(), expected.sort())
  const features = agent.kernel.features()
  assert.deepEqual(
    features.filter(one => one.meta.faults).map(one => [one.name, one.meta.faults?.count]),
    [['other', logged.length]]
  )
})

test('what fails because its agent was closed in between is the fault of no pack, and no other tap is asked', async () => {
  const failed: string[] = []
  const asked: string[] = []
  const agent = { scope: { closed: false } } as { scope: { closed: boolean } } & AgentHost
  const hooks = createTurnHooks()
  const calls = new TurnHookCalls(hooks, (_, what) => failed.push(what), { limit_ms: 60_000 })
  const closes = () => {
    agent.scope.closed = true
    return broken()
  }
  hooks.turnEnd.tap('first', broken)
  hooks.turnEnd.tap('second', closes)
  hooks.turnEnd.tap('third', () => void asked.push('third'))
  const { signal } = new AbortController()

  await calls.each('turnEnd', [{ agent, turn_id: 0, step: 1, signal, reason: 'completed' }], { limit_ms: 60_000 })
  const blame = (_: string, what: string) => failed.push(what)
  const facts = [{ pack: 'other', item: { field: 'mood', value: broken }, signal }]
  assert.deepEqual(factsOf(facts, agent, 'event', { onAccountOf: (_, __, run) => run(), blame }), {})

  assert.deepEqual([failed, asked], [['tap of turnEnd'], []])
})

test('a step hook that fails has no say: the turn goes on, and the taps after it are still asked', async t => {
  const heard: string[] = []
  const over = latch()
  const hear = (name: string) => (): undefined => {
    heard.push(name)
  }
  const pack = definePack({
    name: 'other',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      for (const hook of [hooks.stepBegin, hooks.beforeStep, hooks.modelError, hooks.shouldContinue, hooks.afterStep, hooks.turnEnd])
        ctx.tap(hook as typeof hooks.afterStep, broken)
      ctx.tap(hooks.beforeStep, request => ({ ...request, system: `${request.system} and more` }))
      ctx.tap(hooks.modelError, hear('modelError'))
      ctx.tap(hooks.shouldContinue, hear('shouldContinue'))
      ctx.tap(hooks.afterStep, hear('afterStep'))
      ctx.tap(hooks.turnEnd, () => {
        heard.push('turnEnd')
        over.open()
      })
    }
  })
  const llm = scriptedLlm(failure(), toolCalls({ id: 'a', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { packs: [pack, echoRunner()] })

  await agent.prompt('go')
  await over.opened

  assert.equal(ending(agent.events).reason, 'completed')
  assert.match(llm.requests[0]?.system ?? '', /and more$/)
  assert.deepEqual(heard, ['modelError', 'afterStep', 'afterStep', 'shouldContinue', 'turnEnd'])
})

test('the next turn begins when the hooks of the end of the one before are over', async t => {
  const ending = latch()
  const over = latch()
  const heard: string[] = []
  const pack = definePack({
    name: 'other',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.tap(hooks.turnEnd, async ({ turn_id }) => {
        heard.push(`end of ${turn_id}`)
        ending.open()
        await over.opened
      })
      ctx.on(turnStarted, ({ payload }) => heard.push(`begin of ${payload.turnId}`))
    }
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [pack] })
  const { session_id } = agent
  await Promise.all([agent.prompt('one'), agent.prompt('two')])
  await ending.opened

  const { active, queued } = (await agent.call(listPrompts, { params: { session_id } })).data

  assert.equal(active?.status, 'running')
  assert.equal(queued.length, 1)
  assert.ok((await agent.call(readSession, { params: { session_id } })).data.busy)
  assert.deepEqual(heard, ['begin of 0', 'end of 0'])
  over.open()
  await agent.settled(2)
  assert.deepEqual(heard, ['begin of 0', 'end of 0', 'begin of 1', 'end of 1'])
})

test('a block of the system prompt that never ends is left out after its time, and so is what it follows from', async t => {
  const never = () => new Promise<string>(() => undefined)
  const pack = definePack({
    name: 'other',
    setup(ctx) {
      ctx.contribute(PromptBlocks, { name: 'stuck', order: 700, render: never, basis: never })
      ctx.contribute(PromptBlocks, { name: 'sound', order: 700, render: () => 'the sound block' })
    }
  })
  const hold = setInterval(() => undefined, 1_000) // the limit alone does not keep the process alive
  t.after(() => clearInterval(hold))
  const llm = scriptedLlm('answer')
  const agent = await startAgent(t, llm, { packs: [pack], config: { agent: { block_ms: 20 } } })

  await agent.prompt('go')
  await agent.settled(1)

  assert.match(llm.requests[0]?.system ?? '', /the sound block/)
  const { faults } = agent.kernel.features().find(one => one.name === 'other')?.meta ?? {}
  assert.match(faults?.last ?? '', /prompt block stuck: took longer than 20 ms/)
})

test('a hook of the end of a turn that hangs holds up the next turn for a limited time', async t => {
  const pack = definePack({
    name: 'other',
    needs: { hooks: TurnHooks },
    setup: (ctx, { hooks }) => ctx.tap(hooks.turnEnd, () => new Promise<void>(() => undefined))
  })
  const hold = setInterval(() => undefined, 1_000) // the limit alone does not keep the process alive
  t.after(() => clearInterval(hold))
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [pack], config: { agent: { turn_end_ms: 20 } } })
  await Promise.all([agent.prompt('one'), agent.prompt('two')])
  await agent.settled(2)
  assert.equal(agent.events.filter(event => event.type === 'turn.ended').length, 2)
})

test('a hook before the reminders can stop the turn at a step boundary', async t => {
  const heard: string[] = []
  const pack = definePack({
    name: 'budget',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.tap(hooks.stepBegin, ({ step }) => {
        heard.push(`begin ${step}`)
        return step === 2 ? 'stop' : undefined
      })
      ctx.contribute(StepInjectors, {
        variant: 'budget',
        inject({ step }) {
          heard.push(`remind ${step}`)
          return undefined
        }
      })
    }
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'never asked')
  const agent = await startAgent(t, llm, { packs: [pack, echoRunner()] })

  await agent.prompt('go')
  await agent.settled(1)

  assert.deepEqual(heard, ['begin 1', 'remind 1', 'begin 2'])
  assert.equal(llm.requests.length, 1)
  assert.equal(ending(agent.events).reason, 'completed')
})

function ending(events: readonly { readonly type: string; readonly payload: unknown }[]) {
  return events.find(event => event.type === 'turn.ended')?.payload as { readonly reason: string }
}

test('reminders and taps of a step that never end are not waited for: the turn goes on', async t => {
  const logged: string[] = []
  const never = new Promise<never>(() => undefined)
  const pack = definePack({
    name: 'other',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.contribute(StepInjectors, { variant: 'hangs', inject: () => never })
      ctx.tap(hooks.stepBegin, () => never)
      ctx.tap(hooks.beforeStep, () => never)
      ctx.tap(hooks.shouldContinue, () => never)
      ctx.tap(hooks.afterStep, () => never)
    }
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [pack], logged, config: { agent: { hook_ms: 2 } } })
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(ending(agent.events).reason, 'completed')
  assert.equal(logged.filter(line => line.includes('took longer than 2 ms')).length, 5)
})

test('once the turn is over, what does not end with it is not waited for; what ends in time counts', async () => {
  const hold = setInterval(() => undefined, 1_000) // its own timers do not keep the process alive
  const control = new AbortController()
  const never = new Promise<never>(() => undefined)
  const waiting = waited(never, { limit_ms: 60_000, signal: control.signal, grace_ms: 2 })
  control.abort()
  await assert.rejects(waiting, /did not end with its turn/)
  await assert.rejects(waited(never, { limit_ms: 60_000, signal: control.signal, grace_ms: 2 }), /did not end with its turn/)
  assert.equal(await waited(Promise.resolve('fine'), { limit_ms: 60_000, signal: control.signal, grace_ms: 2 }), 'fine')
  clearInterval(hold)
})
