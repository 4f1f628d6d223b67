/** Packs are swapped while turns run: every turn ends as if nothing had happened, and nothing of the old versions stays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PromptBlocks, StepInjectors, TurnHooks } from '../../../features/agent/index.ts'
import { definePack, defineRoute, Type } from '../../../kernel/index.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { startAgent } from './start.ts'

/** `SVC_CODE_TEST_SWAPS` sets the number. */
const swaps = Number(process.env.SVC_CODE_TEST_SWAPS ?? 60)
const version = defineRoute({ method: 'GET', path: '/api/v1/swapped', summary: 'Version', data: Type.Integer() })
const swapped = (n: number) =>
  definePack({
    name: 'swapped',
    version: `1.0.${n}`,
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.route(version, () => n)
      ctx.contribute(PromptBlocks, { name: 'swapped', order: 700, render: () => `version ${n}` })
      ctx.contribute(StepInjectors, { variant: 'swapped', inject: async () => ({ text: `version ${n}` }) })
      ctx.tap(hooks.stepBegin, async () => undefined)
      const timer = setInterval(() => undefined, 1_000)
      ctx.own(() => clearInterval(timer))
    }
  })

test(`${swaps} swaps of a pack that takes part in turns cut no turn, and leave nothing behind`, async t => {
  const agent = await startAgent(t, scriptedLlm('an answer in pieces'), { packs: [swapped(0)] })
  const { kernel } = agent
  const before = kernel.inspect()
  let swapping = true
  let turns = 0
  const talk = async () => {
    while (swapping) {
      await agent.prompt('go on')
      await agent.settled(++turns)
    }
  }
  const talking = talk()
  for (let n = 1; n <= swaps; n++) {
    await kernel.reload(swapped(n))
    assert.equal((await agent.call(version)).data, n)
  }
  swapping = false
  await talking

  const ends = agent.events.filter(event => event.type === 'turn.ended').map(event => (event.payload as { reason: string }).reason)
  assert.ok(turns >= 1)
  assert.deepEqual(new Set(ends), new Set(['completed']))
  assert.equal(ends.length, turns)
  assert.deepEqual(kernel.inspect(), before)
  assert.deepEqual(
    kernel.features().filter(one => one.state !== 'Active' || one.meta.faults),
    []
  )
})
