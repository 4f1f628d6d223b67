/** Guards and the authority change the arguments of a call: what runs is what was decided about and what everybody sees. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ToolAuthority, type ToolCallContext, type ToolDenial, ToolHooks, type ToolRewrite, Tools } from '../../features/tools/index.ts'
import { definePack, type Pack, Type } from '../../kernel/index.ts'
import { wireOf } from '../features/agent/start.ts'
import { scripted } from '../features/tools/fakes.ts'
import { conversation } from '../helpers/conversation.ts'
import { freshDir } from '../helpers/temp.ts'

type Guard = (context: ToolCallContext) => ToolDenial | ToolRewrite | undefined

/** A pack that guards every call. */
function guard(name: string, answer: Guard, stage = 0): Pack {
  return definePack({ name, needs: { hooks: ToolHooks }, setup: (ctx, { hooks }) => void ctx.tap(hooks.before, answer, { stage }) })
}

const rewrite = (args: Record<string, unknown>, reason?: string): ToolRewrite => ({
  kind: 'rewrite',
  args,
  ...(reason === undefined ? {} : { reason })
})

/** The command of a call in other words. */
const command =
  (change: (line: string) => string | undefined): Guard =>
  ({ args }) => {
    const line = change(String(args.command))
    return line === undefined ? undefined : rewrite({ command: line })
  }

const withPacks = (...more: readonly Pack[]) => ({ packs: (packs: readonly Pack[]) => [...packs, ...more] })

test('a rewritten call is asked for, announced, run and told to the model with its new arguments', async t => {
  const polite = guard('polite', ({ args }) =>
    args.command === 'echo one' ? rewrite({ command: 'echo two' }, 'Two is better.') : undefined
  )
  const { turn, events, upstream, home } = await conversation(t, withPacks(polite))

  const { asked, results } = await turn([['Bash', { command: 'echo one' }]])

  assert.deepEqual(asked, ['Running: echo two'])
  assert.equal(results[0]?.output, 'two')
  const started = events.find(({ type }) => type === 'tool.call.started')?.payload as { args: object; display: { command: string } }
  assert.deepEqual(started.args, { command: 'echo two' })
  assert.equal(started.display.command, 'echo two')
  assert.deepEqual((await wireOf({ home })).find(({ type }) => type === 'tool.begin')?.changed_by, ['polite'])
  const told = JSON.stringify(upstream.requests.at(-1)?.body)
  assert.match(told, /changed by polite to \{.*echo two.*\}\. Two is better\./)
})

test('what a guard makes of a call is decided about by guards before it, by rules, and by the place it leads to', async t => {
  const places: Record<string, string> = { inside: join(await freshDir(), 'outside.txt') }
  const moves = guard('moves', ({ tool, args }) => {
    const to = places[String(args.path)]
    return tool.name === 'Write' && to !== undefined ? rewrite({ ...args, path: to }) : undefined
  })
  const watch = guard('watching', ({ args }) => (args.command === 'watched' ? { kind: 'deny', output: 'seen by watch' } : undefined), -100)
  const turns = guard(
    'turns',
    command(line => ({ harmless: 'watched', plain: 'rm -f x' })[line])
  )
  const { turn } = await conversation(t, {
    ...withPacks(moves, watch, turns),
    toml: '[permission]\nrules = [{ decision = "deny", pattern = "Bash(rm *)" }, { decision = "allow", pattern = "Write(inside)" }]\n'
  })

  const moved = await turn([['Write', { path: 'inside', content: 'text' }]])
  assert.deepEqual(moved.asked, [`Writing ${places.inside}`])
  assert.equal(await readFile(places.inside ?? '', 'utf8'), 'text')
  assert.equal((await turn([['Bash', { command: 'harmless' }]], { permission_mode: 'yolo' })).results[0]?.output, 'seen by watch')
  const denied = await turn([['Bash', { command: 'plain' }]])
  assert.deepEqual(denied.asked, [])
  assert.match(denied.results[0]?.output ?? '', /rule of the user forbids/)
})

test('each guard rewrites a call once, however often they disagree', async t => {
  const always = guard(
    'always',
    command(line => `${line} a`)
  )
  const other = guard(
    'other',
    command(line => `${line} b`)
  )
  const { turn } = await conversation(t, withPacks(always, other))
  const { results } = await turn([['Bash', { command: 'echo' }]], { permission_mode: 'yolo' })
  assert.equal(results[0]?.output, 'a b')
})

test('arguments that do not fit the tool refuse the call without asking', async t => {
  const wrong = guard('wrong', () => rewrite({ command: 7 }))
  const nothing = guard('nothing', ({ args }) => (args.command === 'nothing' ? ({ kind: 'rewrite' } as ToolRewrite) : undefined), -1)
  const { turn, upstream } = await conversation(t, withPacks(wrong, nothing))
  for (const line of ['true', 'nothing']) {
    const { asked, results } = await turn([['Bash', { command: line }]])
    assert.deepEqual(asked, [])
    assert.match(results[0]?.output ?? '', /Invalid arguments for tool Bash/)
  }
  assert.match(JSON.stringify(upstream.requests.at(-1)?.body), /changed by nothing/)
})

test('the authority may rewrite a call once, also after it has asked; the second time the call is refused', async t => {
  const echo = scripted({
    name: 'Say',
    parameters: Type.Object({ text: Type.String() }),
    run: ({ text }) => ({ output: String(text) })
  })
  const tool = definePack({ name: 'say', setup: ctx => ctx.contribute(Tools, echo) })
  const authority = definePack({
    name: 'own-authority',
    provides: [ToolAuthority],
    setup: ctx =>
      ctx.provide(ToolAuthority, {
        permit: async ({ args: { text } }) => {
          if (text === 'once') return rewrite({ text: 'changed' })
          if (text === 'asked') return { kind: 'ask', ask: async () => rewrite({ text: 'answered' }) }
          return String(text).startsWith('again') ? rewrite({ text: `${text}!` }) : { kind: 'run' }
        },
        readable: async () => () => true
      })
  })
  const { turn } = await conversation(t, {
    packs: packs => [...packs.filter(pack => pack.name !== 'permissions'), authority, tool]
  })
  const say = async (text: string) => (await turn([['Say', { text }]])).results[0]
  assert.equal((await say('once'))?.output, 'changed')
  assert.equal((await say('asked'))?.output, 'answered')
  assert.match((await say('again'))?.output ?? '', /neither permitted nor refused/)
})
