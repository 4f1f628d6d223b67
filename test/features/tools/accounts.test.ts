/** What fails of a tool, a set of tools or a policy is put down to the pack that contributed it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failed } from '../../../features/tools/decision.ts'
import { Registry } from '../../../features/tools/registry.ts'
import { contribution, fakeAgent, scripted } from './fakes.ts'

const broken = (): never => {
  throw new Error('broken')
}

test('a tool, a set and a policy that fail are faults of their packs', async t => {
  const blamed: string[] = []
  const registry = new Registry({
    tools: () => [contribution('one', scripted({ name: 'Look' }))],
    sets: () => [
      contribution('two', { name: 'remote', tools: () => [scripted({ name: 'Far' })] }),
      contribution('three', { name: 'lost', tools: broken })
    ],
    policies: () => [contribution('four', { name: 'rules', refuses: broken })],
    absence: () => undefined,
    accounts: { onAccountOf: (_pack, _what, work) => work(), blame: (pack, what) => void blamed.push(`${pack}: ${what}`) }
  })
  const agent = await fakeAgent(t)

  assert.match(String(registry.callable(agent, 'Look')), /rules could not say/)
  failed('Look', new Error('x'), registry)
  failed('Far', new Error('x'), registry)

  assert.deepEqual(blamed, ['three: tool set lost', 'four: tool policy rules', 'one: tool Look', 'two: tool Far'])
})
