import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StepInjectors, TurnHooks } from '../../../features/agent/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { echoRunner, startAgent } from './start.ts'

const broken = (): never => {
  throw new Error('broken on purpose')
}

test('an injector that fails is left out: the turn goes on, and the others still speak', async t => {
  const pack = definePack({
    name: 'other',
    setup(ctx) {
      ctx.contribute(StepInjectors, { variant: 'broken', inject: broken })
      ctx.contribute(StepInjectors, { variant: 'late', inject: async () => broken() })
      ctx.contribute(StepInjectors, { variant: 'sound', inject: () => ({ text: 'the sound one' }) })
    }
  })
  const llm = scriptedLlm('answer')
  const agent = await startAgent(t, llm, { packs: [pack] })

  await agent.prompt('go')
  await agent.settled(1)

  assert.equal(ending(agent.events).reason, 'completed')
  assert.match(JSON.stringify(llm.requests[0]?.messages), /the sound one/)
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
      for (const hook of [hooks.beforeStep, hooks.modelError, hooks.shouldContinue, hooks.afterStep, hooks.turnEnd])
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

function ending(events: readonly { readonly type: string; readonly payload: unknown }[]) {
  return events.find(event => event.type === 'turn.ended')?.payload as { readonly reason: string }
}
