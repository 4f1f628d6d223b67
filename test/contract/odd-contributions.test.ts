/** Packs that hand in what throws: everybody else is served as ever, and the fault is shown for the pack that handed it in. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { AgentProfileSources, AgentProfiles, AgentRepairs, PromptBlocks, StatusFacts, StepInjectors } from '../../features/agent/index.ts'
import { Capabilities } from '../../features/capabilities/index.ts'
import { CompactionNotes } from '../../features/compaction/index.ts'
import { Config, ConfigSections } from '../../features/config/index.ts'
import { HistoryStates, RecordEvents, UndoFollowers } from '../../features/history/index.ts'
import { InteractionKinds } from '../../features/interactions/index.ts'
import { LlmAdapters, LlmLogins, LlmModels, OutboundHosts, RequestForms } from '../../features/llm/index.ts'
import { McpLogins } from '../../features/mcp/index.ts'
import { PeerTopics } from '../../features/peers/index.ts'
import { MarketplaceRows, PluginServerChecks } from '../../features/plugins/index.ts'
import { AgentConfigHandlers, readSession, SessionChecks, SessionDefaults, Sessions } from '../../features/sessions/index.ts'
import { SkillSources } from '../../features/skills/index.ts'
import { StoppedSubagents } from '../../features/subagents/index.ts'
import { ToolPolicies, ToolSets, Tools } from '../../features/tools/index.ts'
import { HookSources } from '../../features/user-hooks/index.ts'
import { FileWatches } from '../../features/watch/index.ts'
import { Workspaces } from '../../features/workspaces/index.ts'
import { definePack, type ExtensionPoint, type Pack, type PackContext, Type } from '../../kernel/index.ts'
import { scriptedModel, startTestServer, toolCalls } from '../../testing/index.ts'
import { projectRoot } from '../helpers/project-root.ts'
import { freshDir } from '../helpers/temp.ts'

const boom = (): never => {
  throw new Error('odd')
}
const section = { schema: Type.Object({ a: Type.Optional(Type.Integer()) }), default: {} }
const state = { version: 1, initial: () => ({}), reduce: (given: object) => given }
const event = { type: 'odd', payload: {}, at: new Date(0) }
const tool = { name: 'Odd', description: 'odd', parameters: Type.Object({}), source: 'builtin' }
const capability = { id: 'odd', displayName: 'odd', description: 'odd', supported: true, detect: boom }

interface Row {
  readonly point: ExtensionPoint<unknown>
  readonly item: object
  /** What fails, as the log says. Undefined: nobody asks it in this test. */
  readonly fault?: string
}
const row = (point: ExtensionPoint<unknown>, item: object, fault?: string): Row => ({ point, item, ...(fault && { fault }) })

/** By the name of the pack that contributes it. */
const rows: Readonly<Record<string, Row>> = {
  'odd-review': row(ConfigSections, { name: 'odd_review', ...section, review: boom }, 'review of config-sections odd_review'),
  'odd-overlay': row(ConfigSections, { name: 'odd_overlay', ...section, overlay: boom }, 'overlay of config-sections odd_overlay'),
  'odd-to-wire': row(ConfigSections, { name: 'odd_to_wire', ...section, toWire: boom }, 'toWire of config-sections odd_to_wire'),
  'odd-salvage': row(ConfigSections, { name: 'odd_salvage', ...section, salvage: boom }, 'salvage of config-sections odd_salvage'),
  'odd-skills': row(SkillSources, { name: 'odd', places: boom }, 'skill source odd'),
  'odd-initial': row(HistoryStates, { ...state, name: 'odd-i', initial: boom }, 'initial of history-states odd-i'),
  'odd-reduce': row(HistoryStates, { ...state, name: 'odd-r', reduce: boom }, 'reduce of history-states odd-r'),
  'odd-located': row(HistoryStates, { ...state, name: 'odd-l', located: boom }, 'located of history-states odd-l'),
  'odd-undo': row(UndoFollowers, { name: 'odd', undone: boom }, 'undo follower odd'),
  'odd-events': row(RecordEvents, { events: boom, tell: boom }, 'events of record-events'),
  'odd-tell': row(RecordEvents, { events: () => [event], tell: boom }, 'tell of record-events'),
  'odd-stopped': row(StoppedSubagents, { name: 'odd', stopped: boom }),
  'odd-hooks': row(HookSources, { rules: boom }, 'hook rules'),
  'odd-notes': row(CompactionNotes, { name: 'odd', note: boom }),
  'odd-fact': row(StatusFacts, { field: 'odd', value: boom, initial: boom }, 'status fact odd'),
  'odd-profile': row(AgentProfiles, {
    name: 'odd',
    description: 'odd',
    role: 'odd',
    get tools() {
      return boom()
    }
  }),
  'odd-profiles': row(AgentProfileSources, { name: 'odd', profiles: boom }, 'source of agent profiles odd'),
  'odd-repair': row(AgentRepairs, { name: 'odd', records: boom }),
  'odd-injector': row(StepInjectors, { variant: 'odd', inject: boom }, 'injector odd'),
  'odd-block': row(PromptBlocks, { name: 'odd', order: 1, render: boom, basis: boom }, 'prompt block odd'),
  'odd-form': row(RequestForms, { fit: boom, refused: boom }, 'fit of request-forms'),
  'odd-adapter': row(
    LlmAdapters,
    { protocol: 'odd', needs_credential: false, stream: boom, baseUrl: boom, missing: boom, tokenUrl: boom },
    'model adapter odd'
  ),
  'odd-hosts': row(OutboundHosts, { pack: 'odd', hosts: boom }),
  'odd-login': row(LlmLogins, { status: boom, accessToken: boom }, 'status of llm-logins'),
  'odd-topic': row(PeerTopics, { topic: 'odd', present: boom, joined: boom, left: boom, told: boom, asked: boom }),
  'odd-capability': row(Capabilities, { ...capability, unavailable: boom, install: boom }, 'unavailable of capabilities'),
  'odd-handler': row(AgentConfigHandlers, { field: 'odd', order: 1, apply: boom }),
  'odd-check': row(SessionChecks, { name: 'odd', check: boom }, 'session check odd'),
  'odd-default': row(SessionDefaults, { name: 'odd', value: boom }, 'session default odd'),
  'odd-tool': row(Tools, { ...tool, prepare: boom }, 'tool Odd'),
  'odd-tools': row(ToolSets, { name: 'odd', tools: boom }, 'tool set odd'),
  'odd-policy': row(
    ToolPolicies,
    { name: 'odd', refuses: (_agent: unknown, { name }: { name: string }) => (name === 'Odd' ? undefined : boom()) },
    'refuses of tool-policies odd'
  ),
  'odd-kind': row(InteractionKinds, { kind: { name: 'odd', pending: 'approval' }, tell: boom }),
  'odd-mcp-login': row(McpLogins, { tokens: boom }),
  'odd-rows': row(MarketplaceRows, { rows: boom }, 'rows of the marketplace'),
  'odd-servers': row(PluginServerChecks, { problem: boom }, 'problem of plugin-server-checks')
}

const packs: Pack[] = Object.entries(rows).map(([name, { point, item }]) =>
  definePack({ name, setup: ctx => void ctx.contribute(point, item) })
)
/** By the function that takes it: a pack that hands it a listener that throws. */
const listeners: Readonly<Record<string, Pack>> = {
  'config.onChange': definePack({
    name: 'odd-config',
    needs: { config: Config },
    setup: (_ctx, { config }) => void config.onChange(boom)
  }),
  'sessions.onLoad': definePack({
    name: 'odd-load',
    needs: { sessions: Sessions },
    setup: (_ctx, { sessions }) => void sessions.onLoad(async () => boom())
  }),
  'sessions.onArchive': definePack({
    name: 'odd-archive',
    needs: { sessions: Sessions },
    setup: (_ctx, { sessions }) => void sessions.onArchive(boom)
  }),
  'sessions.onRestore': definePack({
    name: 'odd-restore',
    needs: { sessions: Sessions },
    setup: (_ctx, { sessions }) => void sessions.onRestore(boom)
  }),
  'workspaces.onTrustChange': definePack({
    name: 'odd-trust',
    optional: { workspaces: Workspaces },
    setup: (ctx, { workspaces }) => void ctx.tap(ctx.hooks.started, () => void workspaces()?.onTrustChange(boom))
  }),
  'file-watches.watch': definePack({
    name: 'odd-watch',
    needs: { watches: FileWatches },
    setup: (ctx, { watches }) => watches.watch({ root: ctx.home, path: 'watched' }, { changed: boom, unknown: boom })
  })
}
packs.push(
  ...Object.values(listeners),
  definePack({
    name: 'odd-model',
    setup: ctx => void (ctx as PackContext).contribute(LlmModels as ExtensionPoint<unknown>, { alias: 'odd/lacking', protocol: 'scripted' })
  }),
  definePack({
    name: 'odd-list',
    setup: ctx => void ctx.contribute(HistoryStates, { ...state, name: 'odd-list', records: ['message'] as never })
  })
)

const toml = `
[odd_review]
a = 2
[odd_salvage]
a = "two"
[providers.work]
type = "svc"
[providers.work.oauth]
storage = "file"
key = "work"
[providers.odd]
type = "odd"
[models."odd/one"]
provider = "odd"
model = "one"
max_context_size = 1000
`

const plugin = { name: 'served', version: '1.0.0', mcpServers: { one: { command: 'no-such-program' } } }

test('a pack that hands in what throws is shown with its fault; everybody else is served, and nobody else is blamed', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), toml, { mode: 0o600 })
  const model = scriptedModel(toolCalls({ name: 'Odd' }), 'done')
  const logged: { readonly pack?: string; readonly msg: string }[] = []
  let heard: () => void = () => undefined
  const watchFailed = new Promise<void>(resolve => {
    heard = resolve
  })
  const write = (line: string) => {
    logged.push(JSON.parse(line))
    if (logged.at(-1)?.pack === 'odd-watch') heard()
  }
  const log = { level: 'error', to: { write } } as const
  const server = await startTestServer(t, { home, model, packs, log })
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await server.rest.json(method, `/api/v1${path}`, body)
    assert.equal(answer.code, 0, `${method} ${path}: ${answer.msg}`)
  }
  const session = `/sessions/${server.session_id}`

  await ask('GET', '/config')
  await ask('POST', '/config', { telemetry: true })
  await mkdir(join(home, 'given'))
  await writeFile(join(home, 'given', 'svc.plugin.json'), JSON.stringify(plugin))
  await ask('POST', '/plugins', { source: join(home, 'given') })
  for (const path of ['/config', '/models', '/providers', '/auth', '/tools', '/capabilities', '/mcp/servers', '/plugins/marketplace'])
    await ask('GET', path)
  const { reason, text } = await server.prompt('use the tool', { model: 'scripted' })
  assert.deepEqual([reason, text], ['completed', 'done'])
  assert.equal((await server.prompt('ask the odd one', { model: 'odd/one' })).reason, 'failed')
  for (const path of ['', '/status', '/snapshot', '/messages', '/profile', '/skills']) await ask('GET', session + path)
  await ask('POST', `${session}:undo`, { count: 1 })
  await ask('GET', '/sessions')
  const { workspace_id } = (await server.call(readSession, { params: { session_id: server.session_id } })).data
  await ask('POST', `/workspaces/${workspace_id}/trust`)
  await ask('POST', `${session}:archive`)
  await ask('POST', `${session}:restore`)
  await writeFile(join(home, 'watched'), '')
  await watchFailed

  const features = new Map(
    server.kernel.features().map(({ name, state, meta }) => [name, { state, error: meta.error, faults: meta.faults }])
  )
  const saidOf = (name: string) => [...new Set(logged.flatMap(({ pack, msg }) => (pack === name ? [msg] : [])))]
  for (const [name, { fault }] of Object.entries(rows)) {
    assert.equal(features.get(name)?.state, 'Active', name)
    if (!fault) continue
    assert.ok(saidOf(name).includes(`${fault} failed`), `${name}: ${saidOf(name)}`)
    assert.ok(features.get(name)?.faults, name)
  }
  for (const [taker, { name }] of Object.entries(listeners)) assert.equal(features.get(name)?.faults?.last, `listener of ${taker}: odd`)
  assert.match(features.get('odd-model')?.error ?? '', /'llm-models' needs 'provider_id' \(string\)/)
  assert.match(features.get('odd-list')?.error ?? '', /'history-states' needs 'records' \(set\?\), not \[ 'message' \]/)
  assert.deepEqual(
    [...features].filter(([name, { faults }]) => faults && !name.startsWith('odd-')),
    []
  )
  assert.deepEqual(
    logged.filter(({ pack, msg }) => !pack?.startsWith('odd-') && !msg.startsWith('pack odd-')),
    []
  )
})

const features = new URL('features/', projectRoot)
const files = (await readdir(features, { recursive: true })).filter(name => name.endsWith('.ts'))
const texts = await Promise.all(files.map(name => readFile(new URL(name, features), 'utf8')))

test('every function of a service of the default packs that takes a listener says so with its token, and has its pack here', () => {
  const all = texts.join('\n')
  const taking = [...all.matchAll(/serviceToken<(\w+)>\(\s*'([^']+)'/g)].flatMap(([, service, id]) => {
    const [, body = ''] = new RegExp(`^export interface ${service} \\{\n((?:.*\n)*?)\\}`, 'm').exec(all) ?? []
    return [...body.matchAll(/^ {2}(\w+)\(.*\blistener: /gm)].map(([, name]) => `${id}.${name}`)
  })
  assert.deepEqual(taking.toSorted(), Object.keys(listeners).toSorted())
})

test('every extension point of the default packs has its row', () => {
  const declared = texts.flatMap(text => [...text.matchAll(/extensionPoint<[^>]+>\(\s*'([^']+)'/g)].map(([, id]) => id as string))
  const tried = [...Object.values(rows).map(({ point }) => point.id), LlmModels.id]
  assert.deepEqual(declared.toSorted(), [...new Set(tried)].toSorted())
})
