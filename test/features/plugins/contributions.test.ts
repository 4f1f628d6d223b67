import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Agents } from '../../../features/agent/index.ts'
import {
  disablePlugin,
  enablePlugin,
  type PluginMcpServer,
  Plugins,
  pluginChanged,
  readMarketplace,
  removePlugin
} from '../../../features/plugins/index.ts'
import { MarketplaceRows } from '../../../features/plugins/service.ts'
import { readSession, Sessions } from '../../../features/sessions/index.ts'
import { activateSkill, listSessionSkills } from '../../../features/skills/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { inEachDisguise } from '../../helpers/disguises.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { directory, host, manifest, start } from './scene.ts'

const plugin = () =>
  directory({
    ...manifest('kit', {
      skills: ['./skills'],
      commands: './commands',
      sessionStart: { skill: 'welcome' },
      skillInstructions: 'Kit rules.',
      systemPrompt: 'Kit is here.',
      systemPromptPath: './more.md',
      hooks: [
        {
          event: 'UserPromptSubmit',
          command: 'test -f "$SVC_PLUGIN_ROOT/svc.plugin.json" && test -n "$SVC_CODE_HOME" && echo "kit was asked in $PWD"'
        }
      ],
      mcpServers: {
        db: { command: 'node', args: ['./server.mjs'] },
        web: { url: 'https://example.com/mcp' },
        absolute: { command: process.execPath }
      }
    }),
    'more.md': '\nKit has more.\n',
    'skills/welcome.md': 'Welcome words.',
    'skills/other/SKILL.md': '---\nname: other\ndescription: Other\n---\nOther words.',
    'commands/ship.md': 'Ship $ARGUMENTS now.',
    'commands/more/deep.md': '---\ndescription: Deep one\n---\nDeep.',
    'agents/helper.md': '---\nname: helper\ndescription: Helps\n---\nYou help.'
  })

test('what a plugin brings is there at once in a session that runs, and gone when it is switched off', async t => {
  const llm = scriptedLlm('one', 'two', 'three')
  const scene = await start(t, llm)
  const params = { session_id: scene.session_id }
  await scene.prompt('before')
  await scene.settled(1)
  assert.equal((await scene.install(await plugin())).data.commandCount, 2)
  await scene.prompt('with it')
  await scene.settled(2)
  assert.match(String(llm.requests[1]?.system), /Kit is here\.\n\nKit has more\./)
  const sent = JSON.stringify(llm.requests[1]?.messages)
  assert.match(sent, /Kit rules\.[\s\S]*Welcome words/)
  assert.match(sent, /kit was asked in .*plugins\/managed\/kit/)
  const names = async () => (await scene.call(listSessionSkills, { params })).data.skills.filter(({ source }) => source === 'extra')
  assert.deepEqual(
    (await names()).map(({ name, type, description }) => [name, type, description]),
    [
      ['kit:more:deep', 'flow', 'Deep one'],
      ['kit:ship', 'flow', 'Ship $ARGUMENTS now.'],
      ['other', 'prompt', 'Other'],
      ['welcome', 'prompt', 'Welcome words.']
    ]
  )
  await scene.call(disablePlugin, { params: { plugin_id: 'kit' } })
  assert.deepEqual(await names(), [])
  await scene.prompt('without it')
  await scene.settled(3)
  assert.doesNotMatch(String(llm.requests[2]?.system), /Kit is here/)
  assert.equal(JSON.stringify(llm.requests[2]?.messages).match(/kit was asked/g)?.length, 1)
})

test('the skill of a session begin is told once, as what the plugin wants', async t => {
  const llm = scriptedLlm('one', 'two')
  const scene = await start(t, llm)
  await scene.install(await plugin())
  await scene.prompt('a')
  await scene.settled(1)
  await scene.prompt('b')
  await scene.settled(2)
  const told = JSON.stringify(llm.requests[1]?.messages)
  assert.equal(told.match(/Welcome words/g)?.length, 1)
  assert.match(told, /A plugin of the user lets every conversation begin with the skill/)
  assert.doesNotMatch(told, /as you asked/)
})

test('a command of a plugin is called by its user, and told as a command', async t => {
  const llm = scriptedLlm('shipped')
  const scene = await start(t, llm)
  await scene.install(await plugin())
  const params = { session_id: scene.session_id }
  const { code, data } = await scene.call(activateSkill, { params: { ...params, skill_name: 'kit:ship' }, body: { args: 'v2' } })
  assert.deepEqual([code, data], [0, { activated: true, skill_name: 'kit:ship' }])
  await scene.settled(1)
  assert.match(JSON.stringify(llm.requests[0]?.messages), /command \\\\?"kit:ship[\s\S]*Ship v2 now\./)
  const event = scene.events.find(({ type }) => type === 'plugin_command.activated')
  assert.ok(event)
  const { activationId, ...payload } = event.payload as Record<string, unknown>
  assert.ok(activationId)
  assert.deepEqual(payload, { pluginId: 'kit', commandName: 'ship', commandArgs: 'v2', trigger: 'user-slash' })
  assert.ok(!scene.events.some(({ type }) => type === 'skill.activated'))
  assert.equal((await scene.call(readSession, { params })).data.last_prompt, '/kit:ship v2')
})

test('servers of plugins that are on are offered by their own names, and changes are told', async t => {
  let servers: () => Promise<readonly PluginMcpServer[]> = async () => []
  let changes = 0
  const user = definePack({
    name: 'servers-user',
    needs: { plugins: Plugins },
    setup(ctx, { plugins }) {
      servers = () => plugins.mcpServers()
      ctx.on(pluginChanged, () => changes++)
    }
  })
  const scene = await start(t, undefined, { packs: [user] })
  await scene.install(await plugin())
  assert.deepEqual(
    (await servers()).map(({ name, server, plugin_id }) => [name, server, plugin_id]),
    [
      ['plugin-kit:db', 'db', 'kit'],
      ['plugin-kit:web', 'web', 'kit'],
      ['plugin-kit:absolute', 'absolute', 'kit']
    ]
  )
  assert.equal((await servers())[0]?.root, join(scene.home, 'plugins', 'managed', 'kit'))
  await scene.call(disablePlugin, { params: { plugin_id: 'kit' } })
  assert.deepEqual(await servers(), [])
  await scene.call(enablePlugin, { params: { plugin_id: 'kit' } })
  await scene.call(removePlugin, { params: { plugin_id: 'kit' } })
  assert.deepEqual([await servers(), changes], [[], 4])
})

test('agent profiles of plugins are there when packs and clients hear of a change', async t => {
  const seen: boolean[] = []
  const user = definePack({
    name: 'profiles-user',
    needs: { agents: Agents, sessions: Sessions },
    setup(ctx, { agents, sessions }) {
      ctx.on(pluginChanged, () => seen.push(agents.profiles(sessions.allLoaded()[0]).some(({ name }) => name === 'helper')))
    }
  })
  const scene = await start(t, undefined, { packs: [user] })
  await scene.install(await plugin())
  await scene.call(disablePlugin, { params: { plugin_id: 'kit' } })
  await scene.call(enablePlugin, { params: { plugin_id: 'kit' } })
  assert.deepEqual(seen, [true, false, true])
})

test('sections of plugins that do not fit together are left out whole, with a warning', async t => {
  const llm = scriptedLlm('one')
  const scene = await start(t, llm)
  for (const name of ['a', 'b', 'c']) await scene.install(await directory(manifest(name, { systemPrompt: `${name}-text `.repeat(3800) })))
  await scene.prompt('go')
  const { payload } = await scene.waitFor(({ type }) => type === 'warning')
  await llm.arrived(0)
  assert.equal((payload as { code: string }).code, 'plugin-sections-oversized')
  assert.match((payload as { message: string }).message, /: c$/)
  assert.match(String(llm.requests[0]?.system), /b-text/)
  assert.doesNotMatch(String(llm.requests[0]?.system), /c-text/)
})

test('another server of the home sees what is installed, and its turns, too', async t => {
  const llm = scriptedLlm('one')
  const scene = await start(t)
  const other = await start(t, llm, { home: scene.home })
  await scene.install(await plugin())
  await other.prompt('go')
  await other.settled(1)
  assert.match(String(llm.requests[0]?.system), /Kit is here/)
  assert.deepEqual(
    (await other.list()).map(({ id }) => id),
    ['kit']
  )
})

test('the hooks of a plugin decide at another server of the home at once, also where nobody tells of it', async t => {
  const llm = scriptedLlm('one')
  const scene = await start(t)
  const other = await start(t, llm, { home: scene.home })
  const hooks = [{ event: 'UserPromptSubmit', command: 'echo not here >&2; exit 2' }]
  await scene.install(await directory(manifest('guard', { hooks })))
  await other.waitFor(({ type }) => type === pluginChanged.type)
  await other.prompt('go')
  const { payload } = await other.waitFor(({ type }) => type === 'prompt.completed')
  assert.equal((payload as { reason?: string }).reason, 'blocked')
  assert.deepEqual(llm.requests, [])
})

test('another server of the home that nobody tells of a plugin has its skills and servers when it is asked for them', async t => {
  let servers: () => Promise<readonly PluginMcpServer[]> = async () => []
  const user = definePack({
    name: 'servers-user',
    needs: { plugins: Plugins },
    setup(_, { plugins }) {
      servers = () => plugins.mcpServers()
    }
  })
  const scene = await start(t)
  const other = await start(t, undefined, { home: scene.home, packs: [user] })
  const params = { session_id: other.session_id }
  const skills = async () =>
    (await other.call(listSessionSkills, { params })).data.skills.flatMap(each => (each.source === 'extra' ? [each.name] : []))
  assert.deepEqual([await skills(), await servers()], [[], []])
  await scene.install(await plugin())
  assert.deepEqual(await skills(), ['kit:more:deep', 'kit:ship', 'other', 'welcome'])
  await scene.call(disablePlugin, { params: { plugin_id: 'kit' } })
  assert.deepEqual(await servers(), [])
  await scene.call(enablePlugin, { params: { plugin_id: 'kit' } })
  assert.equal((await servers()).length, 3)
})

const rows = (supported: boolean) =>
  definePack({
    name: 'rows',
    setup(ctx) {
      ctx.contribute(MarketplaceRows, {
        rows: () => [{ id: 'cap', displayName: 'Cap', description: 'A capability', capabilityId: 'cap', pluginId: 'cap-plugin', supported }]
      })
    }
  })

async function withMarketplace<T>(location: string | undefined, work: () => Promise<T>): Promise<T> {
  const before = process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL
  if (location === undefined) delete process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL
  else process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL = location
  try {
    return await work()
  } finally {
    if (before === undefined) delete process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL
    else process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL = before
  }
}

test('a catalog that is no file is told', async t => {
  const scene = await start(t)
  const file = join(await directory({}), 'list.json')
  await inEachDisguise(file, async what => {
    const { code, msg } = await withMarketplace(file, () => scene.call(readMarketplace, {}))
    assert.match(`${code} ${msg}`, /cannot be reached: it is (?:not a regular file|larger than \d+ bytes)/, what)
  })
})

test('the marketplace merges the catalog with what is installed, and says which versions are newer', async t => {
  const web = await host(t)
  const scene = await start(t, undefined, { packs: [rows(false)], config: { plugins: { repo_hosts: [web.url] } } })
  await scene.install(await directory(manifest('mine')))
  await scene.install(await directory(manifest('same')))
  web.serve['/o/free/releases/latest'] = { location: '/o/free/releases/tag/v3.1.0' }
  web.serve['/catalog/list.json'] = JSON.stringify({
    version: 1,
    plugins: [
      {
        id: 'mine',
        displayName: 'Mine',
        tier: 'official',
        version: '1.2.0',
        source: './mine.zip',
        description: 'D',
        keywords: ['k'],
        websiteURL: 'https://x'
      },
      { id: 'same', name: 'Same', tier: 'curated', version: '1.0.0', downloadUrl: 'https://example.com/same.zip' },
      { id: 'pinned', url: `${web.url}/o/r/releases/tag/v2.0.1` },
      { id: 'free', source: `${web.url}/o/free`, tier: 'third-party' },
      { id: 'far', source: 'file://elsewhere/a%2Fb' },
      { id: 'cap-plugin', source: 'https://example.com/cap.zip' }
    ]
  })
  const read = () => withMarketplace(`${web.url}/catalog/list.json`, () => scene.call(readMarketplace, {}))
  const { data } = await read()
  assert.deepEqual(data.entries, [
    {
      id: 'mine',
      tier: 'official',
      displayName: 'Mine',
      description: 'D',
      homepage: 'https://x',
      keywords: ['k'],
      version: '1.2.0',
      source: `${web.url}/catalog/mine.zip`,
      installed: { version: '1.0.0', enabled: true },
      updateAvailable: true
    },
    {
      id: 'same',
      tier: 'curated',
      displayName: 'Same',
      version: '1.0.0',
      source: 'https://example.com/same.zip',
      installed: { version: '1.0.0', enabled: true }
    },
    { id: 'pinned', tier: 'third-party', displayName: 'pinned', version: '2.0.1', source: `${web.url}/o/r/releases/tag/v2.0.1` },
    { id: 'free', tier: 'third-party', displayName: 'free', version: '3.1.0', source: `${web.url}/o/free` },
    { id: 'far', tier: 'third-party', displayName: 'far', source: 'file://elsewhere/a%2Fb' }
  ])
  await read()
  assert.equal(web.asked.filter(path => path === '/catalog/list.json').length, 2, 'fetched on every request')
})

test('a catalog that cannot be had or is none answers 50001; without one there are the capabilities of this server', async t => {
  const web = await host(t)
  const scene = await start(t, undefined, { packs: [rows(true)] })
  web.serve['/bad'] = '{'
  web.serve['/odd'] = JSON.stringify({ plugins: [{ id: 'a', source: 'x', tier: 'strange' }] })
  web.serve['/empty'] = JSON.stringify({ plugins: [{ id: 'a' }] })
  for (const location of [`${web.url}/none`, `${web.url}/bad`, `${web.url}/odd`, `${web.url}/empty`, '/no/such/file.json', 'ftp://x/y']) {
    assert.equal((await withMarketplace(location, () => scene.call(readMarketplace, {}))).code, 50001, location)
  }
  const own = {
    id: 'cap',
    tier: 'official',
    displayName: 'Cap',
    description: 'A capability',
    source: 'capability:cap',
    capabilityId: 'cap'
  }
  assert.deepEqual((await withMarketplace(undefined, () => scene.call(readMarketplace, {}))).data.entries, [own])
  const file = join(
    await directory({ 'catalog/list.json': JSON.stringify({ plugins: [{ id: 'near', source: '../near' }] }) }),
    'catalog/list.json'
  )
  await mkdir(join(dirname(dirname(file)), 'near'))
  await writeFile(join(dirname(dirname(file)), 'near', 'svc.plugin.json'), JSON.stringify({ name: 'near' }))
  const { data } = await withMarketplace(file, () => scene.call(readMarketplace, {}))
  assert.deepEqual(
    data.entries.map(({ id, source }) => [id, source]),
    [['near', join(dirname(dirname(file)), 'near')]]
  )
  assert.equal((await scene.install(data.entries[0]?.source ?? '')).code, 0)
})
