import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { startAgent } from '../agent/start.ts'

test('journals go before the sessions in whose stores they lie', async t => {
  const { kernel } = await startAgent(t, scriptedLlm('ok'))

  await kernel.unload('sessions')

  const history = kernel.features().find(({ name }) => name === 'history')
  assert.deepEqual([history?.state, history?.meta.waiting_for], ['Pending', ['sessions']])
})
