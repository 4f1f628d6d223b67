import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { AgentProfiles, PromptBlocks, TurnHooks } from '../../../features/agent/index.ts'
import { patchConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { inEachDisguise } from '../../helpers/disguises.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { startAgent, wireOf } from './start.ts'

/** `$name` as a variable is written. */
const template = (text: string) => text.replace(/\$(\w+)/g, (_, name: string) => `$\{${name}}`)

test('SYSTEM.md stands in place of the prompt, with its variables filled in, until it is gone', async t => {
  const home = await freshDir()
  const file = join(home, 'SYSTEM.md')
  await writeFile(file, template('\n$product_name in $cwd on $now.|$skills|$unknown|$loud|$cwd_listing|\n'))
  const loud = definePack({
    name: 'loud',
    setup: ctx =>
      ctx.contribute(PromptBlocks, { name: 'loud', order: 1, render: () => ({ text: 'LOUD', variables: { loud: template('$cwd') } }) })
  })
  const llm = scriptedLlm('x')
  const agent = await startAgent(t, llm, { home, packs: [loud] })
  await mkdir(join(agent.cwd, 'src'))
  const turn = async (count: number, more = {}) => {
    await agent.prompt('go', more)
    await agent.settled(count)
  }
  await turn(1)
  const today = new Date().toLocaleDateString('sv-SE')
  assert.equal(llm.requests[0]?.system, `svc-code in ${agent.cwd} on ${today}.||\${unknown}|\${cwd}|src/|`)
  const dates = JSON.stringify(llm.requests[0]?.messages).match(/Today is/g)
  assert.equal(dates, null, 'the prompt has said the date')

  await writeFile(file, template('Before. $base_prompt After.'))
  await turn(2)
  assert.match(llm.requests[1]?.system ?? '', /^Before\. LOUD\n\nYou are svc-code[\s\S]*until it is done[\s\S]* After\.$/)
  assert.match(JSON.stringify(llm.requests[1]?.messages), /Today is/)
  await writeFile(file, '  \n')
  await turn(3)
  assert.match(llm.requests[2]?.system ?? '', /^LOUD\n\nYou are svc-code/)
  await rm(file)
  await mkdir(file)
  await turn(4)
  assert.equal(llm.requests[3]?.system, llm.requests[2]?.system, 'what cannot be read changes nothing')
  let turns = 4
  await inEachDisguise(file, async what => {
    await turn(++turns)
    assert.equal(llm.requests.at(-1)?.system, llm.requests[2]?.system, what)
  })
  const warnings = agent.events.filter(event => event.type === 'warning').map(event => (event.payload as { code: string }).code)
  assert.deepEqual(warnings, Array(5).fill('system-prompt-refresh-failed'))
})

test('the agent calls itself as identity.name says, from the turn on that begins behind a change', async t => {
  const home = await freshDir()
  const file = join(home, 'config.toml')
  await writeFile(file, '[identity]\nname = "Ada"\n')
  const llm = scriptedLlm('one', 'two', 'three')
  const agent = await startAgent(t, llm, { home, packs: [config] })
  const turn = async (count: number) => {
    await agent.prompt('go')
    await agent.settled(count)
    return llm.requests.at(-1)?.system ?? ''
  }
  assert.match(await turn(1), /^You are Ada, /)
  await agent.call(patchConfig, { body: { identity: { name: 'Eve' } } })
  assert.match(await turn(2), /^You are Eve, /)
  await writeFile(join(home, 'SYSTEM.md'), template('$product_name here'))
  assert.equal(await turn(3), 'Eve here')
})

test('SYSTEM.md is for the default profile; a profile with a prompt of its own has that', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'SYSTEM.md'), 'SYSTEM')
  const own = definePack({
    name: 'own',
    setup: ctx =>
      ctx.contribute(AgentProfiles, {
        name: 'own',
        description: 'd',
        role: 'ROLE',
        prompt: template('$role_additional alone, $reply_style_guide')
      })
  })
  const explore = scriptedLlm('x')
  const first = await startAgent(t, explore, { home })
  await first.prompt('go', { profile: 'explore' })
  await first.settled(1)
  assert.match(explore.requests[0]?.system ?? '', /You only look/)
  const llm = scriptedLlm('x')
  const second = await startAgent(t, llm, { packs: [own] })
  await second.prompt('go', { profile: 'own' })
  await second.settled(1)
  assert.match(llm.requests[0]?.system ?? '', /^ROLE alone, Before the first tool call/)
})

test('the prompt is rendered anew when what a block follows from has changed; a block that fails then leaves the old text', async t => {
  let basis = 'a'
  let fails = false
  const block = definePack({
    name: 'block',
    setup: ctx =>
      ctx.contribute(PromptBlocks, {
        name: 'moody',
        order: 1,
        basis: () => basis,
        render() {
          if (fails) throw new Error('not now')
          return `basis ${basis}`
        }
      })
  })
  const llm = scriptedLlm('x')
  const agent = await startAgent(t, llm, { packs: [block] })
  const systems: string[] = []
  const turn = async () => {
    await agent.prompt('go')
    await agent.settled(systems.length + 1)
    systems.push(/basis \w/.exec(llm.requests.at(-1)?.system ?? '')?.[0] ?? '')
  }
  await turn()
  await turn()
  basis = 'b'
  await turn()
  basis = 'c'
  fails = true
  await turn()
  fails = false
  await turn()
  assert.deepEqual(systems, ['basis a', 'basis a', 'basis b', 'basis b', 'basis c'])
  assert.equal((await wireOf(agent)).filter(record => record.type === 'agent.prompt').length, 3)
  const warnings = agent.events.filter(event => event.type === 'warning').map(event => event.payload as { code: string; message: string })
  assert.deepEqual(
    warnings.map(({ code, message }) => [code, /moody failed/.test(message)]),
    [['system-prompt-refresh-failed', true]]
  )
})

test('what a turn found out before it was stopped at its first step is told', async t => {
  let fails = false
  const pack = definePack({
    name: 'budget',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.contribute(PromptBlocks, {
        name: 'moody',
        order: 1,
        basis: () => String(fails),
        render() {
          if (fails) throw new Error('not now')
          return 'fine'
        }
      })
      ctx.tap(hooks.stepBegin, () => (fails ? 'stop' : undefined))
    }
  })
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [pack] })
  await agent.prompt('go')
  await agent.settled(1)
  fails = true
  await agent.prompt('go')
  await agent.settled(2)
  const ends = agent.events.filter(({ type }) => type === 'warning' || type === 'turn.ended').map(({ type }) => type)
  assert.deepEqual(ends, ['turn.ended', 'warning', 'turn.ended'])
})
