/** Wire shapes of plugins (contract 2, Plugin summary, Marketplace entry, Capabilities and plugins), and what is on disk. */
import { defineEvent, defineRoute, defineStore, errorSpec, named, oneOf, type Static, Type } from '../../kernel/index.ts'
import { PathMissing } from '../workspaces/index.ts'

export const PluginMissing = errorSpec('plugin_missing', 40419, 'plugin not installed')

const text = Type.String()
const count = Type.Integer({ minimum: 0 })
const Repo = Type.Object({
  owner: text,
  repo: text,
  ref: Type.Object({ kind: oneOf(['branch', 'tag', 'sha']), value: text }),
  installedSha: Type.Optional(text)
})
export type RepoRef = Static<typeof Repo>['ref']

export const PluginSummary = named(
  'Plugin',
  Type.Object({
    id: Type.String({ examples: ['release-notes'] }),
    displayName: text,
    version: Type.Optional(text),
    enabled: Type.Boolean(),
    state: oneOf(['ok', 'error']),
    skillCount: count,
    mcpServerCount: count,
    enabledMcpServerCount: count,
    hookCount: count,
    commandCount: count,
    hasErrors: Type.Boolean(),
    source: oneOf(['local-path', 'zip-url', 'repo']),
    originalSource: Type.Optional(text),
    repo: Type.Optional(Repo),
    diagnostics: Type.Optional(
      Type.Array(Type.Object({ severity: oneOf(['error', 'warn', 'info']), message: text }), {
        description: 'what is wrong with its files'
      })
    )
  })
)
export type PluginSummary = Static<typeof PluginSummary>

export const MarketplaceEntry = named(
  'MarketplaceEntry',
  Type.Object({
    id: text,
    tier: oneOf(['official', 'curated', 'third-party']),
    displayName: text,
    description: Type.Optional(text),
    homepage: Type.Optional(text),
    keywords: Type.Optional(Type.Array(text)),
    version: Type.Optional(text),
    source: Type.String({ description: 'as `POST /plugins` takes it; `capability:<id>`' }),
    installed: Type.Optional(Type.Object({ version: Type.Optional(text), enabled: Type.Boolean() })),
    updateAvailable: Type.Optional(Type.Boolean()),
    capabilityId: Type.Optional(text)
  })
)
export type MarketplaceEntry = Static<typeof MarketplaceEntry>

export const listPlugins = defineRoute({
  method: 'GET',
  path: '/api/v1/plugins',
  summary: 'Installed plugins, by id',
  data: Type.Object({ plugins: Type.Array(PluginSummary) })
})

export const installPlugin = defineRoute({
  method: 'POST',
  operationId: 'installPlugin',
  path: '/api/v1/plugins',
  summary: 'Install a plugin, or another version of it',
  body: named(
    'InstallPluginRequest',
    Type.Object({ source: Type.String({ minLength: 1, maxLength: 4096, examples: ['/home/me/my-plugin'] }) })
  ),
  data: PluginSummary,
  errors: [PathMissing]
})

export const readMarketplace = defineRoute({
  method: 'GET',
  path: '/api/v1/plugins/marketplace',
  summary: 'Plugins that can be installed, and which are',
  data: Type.Object({ entries: Type.Array(MarketplaceEntry) })
})

const action = (name: 'enable' | 'disable' | 'remove', summary: string) =>
  defineRoute({
    method: 'POST',
    operationId: `${name}Plugin`,
    path: `/api/v1/plugins/{plugin_id}:${name}`,
    summary,
    params: Type.Object({ plugin_id: text }),
    data: Type.Object({ ok: Type.Boolean() }),
    errors: [PluginMissing]
  })
export const enablePlugin = action('enable', 'Switch a plugin on, in running sessions, too')
export const disablePlugin = action('disable', 'Switch a plugin off, in running sessions, too')
export const removePlugin = action('remove', 'Remove a plugin and its files')

export const commandActivated = defineEvent({
  type: 'plugin_command.activated',
  summary: 'The user ran a command of a plugin',
  scope: 'session',
  durable: true,
  payload: Type.Object({
    activationId: text,
    pluginId: text,
    commandName: text,
    commandArgs: Type.Optional(text),
    trigger: oneOf(['user-slash'])
  })
})

export const pluginChanged = defineEvent({
  type: 'event.plugin.changed',
  summary: 'A plugin was installed, switched on or off, or removed: the list is another one',
  scope: 'global',
  durable: true,
  perServer: true,
  payload: Type.Object({})
})

export const PluginRecord = Type.Object({
  id: text,
  /** Absolute. */
  root: text,
  source: oneOf(['local-path', 'zip-url', 'repo']),
  enabled: Type.Boolean(),
  installedAt: text,
  updatedAt: text,
  originalSource: text,
  integrity: Type.String({ description: '`sha256-<base64>`: of the archive, or of names and contents of the copied files' }),
  repo: Type.Optional(Repo),
  capabilities: Type.Optional(Type.Object({ mcpServers: Type.Optional(Type.Record(text, Type.Object({ enabled: Type.Boolean() }))) }))
})
export type PluginRecord = Static<typeof PluginRecord>

/** `<home>/plugins/installed.json`. */
export const installedStore = defineStore({
  name: 'plugins',
  kind: 'document',
  value: Type.Object({ version: Type.Literal(1), plugins: Type.Array(PluginRecord) }),
  keepDamaged: true
})
export type Installed = Static<typeof installedStore.value>
