/** Tools that depend on the agent, or come and go while the server runs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { type AgentHost, Sessions } from '../../features/sessions/index.ts'
import { type Tool, ToolPolicies, ToolRunner, type ToolSet, ToolSets, Tools } from '../../features/tools/index.ts'
import { definePack, oneOf, type Pack, Type } from '../../kernel/index.ts'
import { scripted } from '../features/tools/fakes.ts'
import { type Conversation, conversation } from '../helpers/conversation.ts'
import { newSession, prompt, scene } from '../helpers/scene.ts'
import { freshDir } from '../helpers/temp.ts'

/** A pack with this set of tools. */
const packOf = (tools: ToolSet['tools'], name = 'sets') => definePack({ name, setup: ctx => ctx.contribute(ToolSets, { name, tools }) })

const withPacks = (...more: readonly Pack[]) => ({ packs: (packs: readonly Pack[]) => [...packs, ...more] })

interface Shown {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly properties: Record<string, unknown> }
}

/** The tools of each request, in order. */
const shown = ({ upstream }: Conversation): Shown[][] =>
  upstream.requests.map(({ body }) => (body.tools as { function: Shown }[] | undefined)?.map(each => each.function) ?? [])

const named = <T extends { name: string }>(list: readonly T[] | undefined, name: string) => list?.find(each => each.name === name)

test('a tool tells every agent what holds for it, and its arguments are checked against just that', async t => {
  const shared = scripted({ name: 'Shared' })
  const team = ({ session: { cwd } }: AgentHost): Tool[] => {
    const description = `Works in ${cwd}`
    const parameters = Type.Object({ to: oneOf([`of ${cwd}`]) })
    return [
      { ...scripted({ name: 'Hand', parameters, run: ({ to }) => ({ output: `handed ${to}` }) }), description },
      { ...shared, description }
    ]
  }
  const talk = await conversation(t, withPacks(packOf(team)))
  const cwd = await freshDir()
  const other = (await talk.api('POST', '/sessions', { metadata: { cwd } })).data.id
  await talk.api('POST', `/sessions/${other}/prompts`, { content: [{ type: 'text', text: 'go' }] })
  await talk.waitFor(event => event.type === 'prompt.completed')
  const mine = await talk.turn([
    ['Hand', { to: `of ${talk.cwd}` }],
    ['Hand', { to: `of ${cwd}` }]
  ])

  const [, second] = shown(talk).map(list => named(list, 'Hand'))
  for (const name of ['Hand', 'Shared'])
    assert.deepEqual(
      [0, 1].map(at => (named(shown(talk)[at] ?? [], name) as Shown).description),
      [`Works in ${cwd}`, `Works in ${talk.cwd}`]
    )
  assert.match(JSON.stringify(second), new RegExp(`of ${talk.cwd}`))
  assert.equal(mine.results[0]?.output, `handed of ${talk.cwd}`)
  assert.match(mine.results[1]?.output ?? '', /Invalid arguments for tool Hand/)
})

test('a model reads choices of words as enumerations and named values as additional properties, as models know them', async t => {
  const parameters = Type.Object({ how: oneOf(['once', 'twice']), notes: Type.Record(Type.String(), Type.String()) })
  const talk = await conversation(t, withPacks(packOf(() => [scripted({ name: 'Choose', parameters })])))
  await talk.turn([])

  assert.deepEqual(named(shown(talk)[0], 'Choose')?.parameters, {
    type: 'object',
    additionalProperties: false,
    required: ['how', 'notes'],
    properties: { how: { type: 'string', enum: ['once', 'twice'] }, notes: { type: 'object', additionalProperties: { type: 'string' } } }
  })
  assert.doesNotMatch(JSON.stringify(shown(talk)[0]), /"const":"|patternProperties/, 'nor do those of any other tool')
})

test('the tools of a session that was not prompted yet are those that its main agent will have', async t => {
  const talk = await conversation(t)
  const list = async () => ((await talk.api('GET', `/tools?session_id=${talk.session_id}`)).data as { tools: { name: string }[] }).tools
  const before = await list()
  await talk.turn([])
  assert.deepEqual(before, await list())
  assert.ok(named(before, 'Agent') && named(before, 'CreateGoal'), 'also those that depend on the agent')
})

test('what a turn shows to the model stays until it ends; calls are judged by what is there', async t => {
  const tools = new Map<string, Tool>()
  const add = (name: string) => tools.set(name, scripted({ name }))
  tools.set('mcp__a__swap', {
    ...scripted({
      name: 'mcp__a__swap',
      run: () => {
        tools.delete('mcp__a__old')
        add('mcp__b__new')
        return { output: 'swapped' }
      }
    }),
    source: 'mcp'
  })
  add('mcp__a__old')
  const talk = await conversation(t, withPacks(packOf(() => [...tools.values()])))

  const { results } = await talk.turn([['mcp__a__swap', {}]], { permission_mode: 'yolo' })
  const gone = await talk.turn([['mcp__a__old', {}]], { permission_mode: 'yolo' })

  assert.equal(results[0]?.output, 'swapped')
  const [before, sameTurn, after] = shown(talk)
  assert.deepEqual(sameTurn, before)
  assert.ok(named(before, 'mcp__a__old') && !named(before, 'mcp__b__new'))
  assert.ok(!named(after, 'mcp__a__old') && named(after, 'mcp__b__new'))
  assert.match(gone.results[0]?.output ?? '', /not found: mcp__a__old/)
  const listed = (await talk.api('GET', `/tools?session_id=${talk.session_id}`)).data.tools
  assert.deepEqual(named(listed, 'mcp__a__swap'), {
    name: 'mcp__a__swap',
    description: 'mcp__a__swap for tests',
    input_schema: null,
    source: 'mcp',
    mcp_server_id: 'a',
    active: true
  })
})

test('a tool that leaves in the turn that showed it is said to be gone', async t => {
  let tools = [scripted({ name: 'Leaving', run: () => ({ output: 'ran' }) })]
  const quit = scripted({
    name: 'Quit',
    run: () => {
      tools = []
      return { output: 'bye' }
    }
  })
  const steps = ['Quit', 'Leaving'].map((name, at) => [{ tool: { name, args: {}, id: `c${at}` } }])
  const packs = [...(await loadDefaultPacks()), packOf(() => [...tools, quit])]
  const { server, page, cwd } = await scene(t, () => steps.shift() ?? [{ text: 'done' }], { packs })
  const client = await page()

  await prompt(client, await newSession(client, cwd), 'go', { permission_mode: 'yolo' })

  const { payload } = await server.waitFor(event => event.type === 'tool.result' && JSON.stringify(event.payload).includes('c1'))
  assert.match(JSON.stringify(payload), /The tool Leaving is not there any more/)
})

test('a set that offers tools to some agents only neither shows them to others nor runs them there', async t => {
  const mainOnly = (agent: AgentHost) => (agent.record.type === 'main' ? [scripted({ name: 'MainOnly' })] : [])
  const found: { names: string[]; output: unknown }[] = []
  const looks = definePack({
    name: 'looks',
    needs: { sessions: Sessions, runner: ToolRunner },
    setup(_ctx, { sessions, runner }) {
      sessions.onLoad(async session => {
        for (const agent of [await session.main(), await session.createAgent({ type: 'sub', parent_agent_id: 'main' })]) {
          const { signal } = new AbortController()
          const calls = [{ id: 'c', name: 'MainOnly', arguments: '{"path":7}' }]
          const outcomes = await runner.run({ agent, turn_id: 0, calls, signal, report: () => undefined })
          found.push({ names: runner.list(agent, 0).map(({ name }) => name), output: outcomes[0]?.result.output })
        }
      })
    }
  })
  await conversation(t, withPacks(packOf(mainOnly), looks))
  const [main, sub] = found
  assert.ok(main?.names.includes('MainOnly'))
  assert.match(String(main?.output), /Invalid arguments/)
  assert.ok(sub?.names.includes('Bash') && !sub.names.includes('MainOnly'))
  assert.match(String(sub?.output), /not found: MainOnly/)
})

test('a set that fails has no tools and takes no others with it, and none takes the name of another tool', async t => {
  const broken = packOf(() => {
    throw new Error('broken set')
  }, 'broken')
  const thief = packOf(() => [scripted({ name: 'Bash' }), scripted({ name: 'Own' })], 'thief')
  const talk = await conversation(t, withPacks(broken, thief))
  const { results } = await talk.turn(
    [
      ['Bash', { command: 'echo real' }],
      ['Own', {}]
    ],
    { permission_mode: 'yolo' }
  )
  assert.deepEqual(
    results.map(({ output }) => output),
    ['real', 'Own ']
  )
})

test('a policy that fails switches the tool off', async t => {
  const policy = definePack({
    name: 'policy',
    setup: ctx =>
      ctx.contribute(ToolPolicies, {
        name: 'policy',
        refuses(_agent, { name }) {
          if (name === 'Bash') throw new Error('broken policy')
          return undefined
        }
      })
  })
  const talk = await conversation(t, withPacks(policy))
  const { results } = await talk.turn([['Bash', { command: 'echo' }]], { permission_mode: 'yolo' })
  assert.match(results[0]?.output ?? '', /Bash is switched off: policy could not say/)
  const [list] = shown(talk)
  assert.ok(named(list, 'Read') && !named(list, 'Bash'))
})

test('policies that say what they go by are asked again when that, the tools or the policies are others', async t => {
  let off = 'none'
  const asked: string[] = []
  const policy = definePack({
    name: 'policy',
    setup(ctx) {
      const refuses = (_agent: AgentHost, { name }: Tool) => {
        asked.push(name)
        return name === off ? 'It is off.' : undefined
      }
      ctx.contribute(ToolPolicies, { name: 'policy', refuses, basis: () => [off] })
    }
  })
  const more = definePack({ name: 'more', setup: ctx => ctx.contribute(Tools, scripted({ name: 'More' })) })
  const talk = await conversation(t, withPacks(policy, more))
  const askedIn = async () => {
    asked.length = 0
    await talk.turn([])
    return new Set(asked).size > 1
  }
  const last = () => shown(talk).at(-1)

  assert.deepEqual([await askedIn(), await askedIn()], [true, false])
  off = 'Read'
  assert.deepEqual([await askedIn(), await askedIn()], [true, false])
  assert.ok(named(last(), 'Bash') && !named(last(), 'Read'))
  await talk.kernel.unload('more')
  assert.deepEqual([await askedIn(), await askedIn()], [true, false])
  assert.ok(!named(last(), 'More'))
  await talk.api('POST', '/config', { tools: { disabled: ['Bash'] } })
  assert.deepEqual([await askedIn(), await askedIn()], [true, false])
  assert.ok(!named(last(), 'Bash'))
  await talk.kernel.unload('policy')
  await talk.turn([])
  assert.ok(named(last(), 'Read'))
})

test('who names no tool in a list of tools is told so once, with the one that may be meant', async t => {
  const disabled = ['bash', 'WebSearch', 'ReadMediaFile', 'AgentSwarm', 'GetGoal', 'mcp__any__*', 'CronList', 'Web*']
  const talk = await conversation(t, { toml: `tools.disabled = ${JSON.stringify(disabled)}` })
  const warned = () =>
    talk.events.flatMap(({ type, payload }) => (type === 'warning' ? [payload as { code?: string; message: string }] : []))
  await talk.turn([])
  await talk.turn([])
  assert.deepEqual(
    warned().map(({ code, message }) => [code, message]),
    [['tool-pattern-no-match', 'no tool has the name that is switched on or off: bash (did you mean Bash?), Web*']]
  )
  await talk.turn([], { disabled_tools: ['Write', 'Elsewhere'] })
  assert.match(warned()[1]?.message ?? '', /: .*Elsewhere/)
})

test('a profile of the program that lists tools of packs that are not there is no mistake of the user', async t => {
  const talk = await conversation(t, { packs: all => all.filter(({ name }) => name !== 'tools-web') })
  await talk.turn([], { profile: 'explore' })
  assert.deepEqual(
    talk.events.filter(({ type }) => type === 'warning'),
    []
  )
})
