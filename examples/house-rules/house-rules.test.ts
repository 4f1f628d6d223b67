import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurnHooks, TurnHooks } from '../../features/agent/index.ts'
import { createToolHooks, ToolHooks } from '../../features/tools/index.ts'
import { assertLeavesNothing, scriptedModel, startTestKernel, startTestServer, stub, toolCalls } from '../../testing/index.ts'
import houseRules from './pack.ts'

const options = (given: object) => ({ 'house-rules': given })

test('a command that the rules refuse does not run, whoever would approve it; others do', async t => {
  const model = scriptedModel(
    toolCalls({ name: 'Bash', args: { command: 'git push --force origin' } }, { name: 'Bash', args: { command: 'echo fine' } }),
    'done'
  )
  const server = await startTestServer(t, { packs: [houseRules], model, approvals: 'approved' })

  const { results } = await server.prompt('publish it')

  assert.deepEqual(results.map(({ output, is_error }) => [output.trim(), is_error]).sort(), [
    ["The rules of the house refuse 'git push --force'.", true],
    ['fine', false]
  ])
})

test('a prompt with a refused word does not reach the model, and its author hears why', async t => {
  const model = scriptedModel('fine')
  const server = await startTestServer(t, { packs: [houseRules], model, config: options({ refused_words: ['hunter2'] }) })

  assert.equal((await server.prompt('log in with hunter2')).reason, 'blocked')
  assert.equal(model.requests.length, 0)
  const told = server.events.find(event => event.type === 'hook.result')
  assert.match(JSON.stringify(told?.payload), /must not mention 'hunter2'/)
  assert.equal((await server.prompt('log in')).reason, 'completed')
})

test('the model is told the rules, and what the probe says as soon as it said it', async t => {
  const model = scriptedModel('fine')
  const config = options({ rules: 'Tea is served at four.', probe: ['sh', '-c', 'echo three kettles'], probe_every_ms: 10 })
  const server = await startTestServer(t, { packs: [houseRules], model, config })
  const system = async () => {
    await server.prompt('hello')
    return model.requests.at(-1)?.system ?? ''
  }
  assert.match(await system(), /Tea is served at four\./)
  while (!(await system()).includes('This machine says: three kettles'));
})

test('its timer and its child processes end with it', async t => {
  const hooks = [stub(ToolHooks, createToolHooks()), stub(TurnHooks, createTurnHooks())]
  const { kernel } = await startTestKernel(t, {
    packs: hooks,
    graceMs: 200,
    config: options({ probe: ['sh', '-c', 'sleep 1000 & wait'], probe_every_ms: 10 })
  })
  await assertLeavesNothing(async () => {
    await kernel.load(houseRules)
    await kernel.unload('house-rules')
  })
})
