/** What fails of a tool, a set of tools, a policy or a hook is put down to the pack that it is of. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failed } from '../../../features/tools/decision.ts'
import { ToolHooks, ToolPolicies, Tools } from '../../../features/tools/index.ts'
import { Registry } from '../../../features/tools/registry.ts'
import { definePack } from '../../../kernel/index.ts'
import { scriptedModel, startTestServer, toolCalls } from '../../../testing/index.ts'
import { contribution, fakeAgent, scripted } from './fakes.ts'

const broken = (): never => {
  throw new Error('broken')
}

test('a tool and a set that fail are faults of their packs', async t => {
  const blamed: string[] = []
  const registry = new Registry({
    tools: { entries: () => [contribution('one', scripted({ name: 'Look' }))] },
    sets: {
      entries: () => [
        contribution('two', { name: 'remote', tools: () => [scripted({ name: 'Far' })] }),
        contribution('three', { name: 'lost', tools: broken })
      ]
    },
    policies: { entries: () => [] },
    absence: () => undefined,
    accounts: { onAccountOf: (_pack, _what, work) => work(), blame: (pack, what) => void blamed.push(`${pack}: ${what}`) }
  })
  const agent = await fakeAgent(t)

  assert.equal(typeof registry.callable(agent, 'Look'), 'object')
  assert.match(String(registry.callable(agent, 'Nowhere')), /^Tool not found/)
  assert.equal(registry.callable(agent, `a${'😀'.repeat(200)}`), `Tool not found: a${'😀'.repeat(99)}`)
  failed('Look', new Error('x'), registry)
  failed('Far', new Error('x'), registry)

  assert.deepEqual([...new Set(blamed)], ['three: tool set lost', 'one: tool Look', 'two: tool Far'])
})

test('a policy that fails refuses the tool, and is a fault of its pack', async t => {
  const rules = definePack({ name: 'rules-of-mine', setup: ctx => ctx.contribute(ToolPolicies, { name: 'rules', refuses: broken }) })
  const model = scriptedModel(toolCalls({ name: 'Glob', args: { pattern: '*' } }), 'done')
  const server = await startTestServer(t, { model, packs: [rules] })

  const { results } = await server.prompt('look')

  assert.match(results[0]?.output ?? '', /^The tool Glob is switched off: rules could not say/)
  const { faults } = server.kernel.features().find(({ name }) => name === 'rules-of-mine')?.meta ?? {}
  assert.equal(faults?.last, 'refuses of tool-policies rules: broken')
})

test('a hook of a call that fails, or never ends, is a fault of its pack, not of the one with the tool', async t => {
  const never = () => new Promise<never>(() => undefined)
  const tools = definePack({
    name: 'tools-of-mine',
    setup: ctx => ctx.contribute(Tools, scripted({ name: 'Look', run: async () => ({ output: 'seen' }) }))
  })
  const hooked = (name: string, kind: 'before' | 'after', fn: () => Promise<never>) =>
    definePack({ name, needs: { hooks: ToolHooks }, setup: (ctx, { hooks }) => ctx.tap(hooks[kind] as ToolHooks['before'], fn) })
  const suffix = definePack({
    name: 'suffix',
    needs: { hooks: ToolHooks },
    setup: (ctx, { hooks }) => ctx.tap(hooks.after, async result => ({ ...result, output: `${result.output}, and more` }), { stage: 1 })
  })
  const cases: [name: string, kind: 'before' | 'after', fn: () => Promise<never>, output: RegExp][] = [
    ['guard-that-fails', 'before', async () => broken(), /The tool Look failed: broken/],
    ['guard-that-hangs', 'before', never, /The tool Look failed: the guard guard-that-hangs took longer than 50 ms/],
    ['hook-that-fails', 'after', async () => broken(), /^seen, and more$/],
    ['hook-that-hangs', 'after', never, /^seen, and more$/]
  ]
  for (const [name, kind, fn, output] of cases) {
    const model = scriptedModel(toolCalls({ name: 'Look', args: {} }), 'done')
    const server = await startTestServer(t, {
      packs: [tools, suffix, hooked(name, kind, fn)],
      model,
      approvals: 'approved',
      config: { tools: { hook_limit_ms: 50 } }
    })
    const { results } = await server.prompt('look')
    assert.match(results[0]?.output ?? '', output)
    const faulty = server.kernel.features().filter(one => one.meta.faults)
    assert.deepEqual(
      faulty.map(one => one.name),
      [name]
    )
    assert.match(faulty[0]?.meta.faults?.last ?? '', new RegExp(`^tap of toolCall.${kind}: `))
  }
})
