/** Plugins as other packs see them. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { MarketplaceEntry, PluginSummary } from './contract.ts'

/** A server of a plugin, as its manifest says; what it may hold is the business of who runs it. */
export interface PluginMcpServer {
  /** `plugin-<id>:<server>`. */
  readonly name: string
  readonly plugin_id: string
  /** Name in the manifest. */
  readonly server: string
  readonly config: Readonly<Record<string, unknown>>
  /** Root of the plugin, absolute. */
  readonly root: string
  /** Another text when its files are others. */
  readonly revision: string
}

export type InstalledPlugin = Readonly<Pick<PluginSummary, 'id' | 'version' | 'enabled' | 'state'>>

export interface Plugins {
  list(): Promise<readonly InstalledPlugin[]>
  /** Throws what `POST /plugins` answers. */
  install(source: string, signal: AbortSignal): Promise<InstalledPlugin>
  /** Servers of plugins that are switched on, as of now. */
  mcpServers(): Promise<readonly PluginMcpServer[]>
}
export const Plugins = serviceToken<Plugins>('plugins')

/** What a pack that runs servers of plugins says of one; a plugin with one that cannot be understood is not installed. */
export interface PluginServerChecks {
  /** `config`: as the manifest has it. Undefined: it can be run. */
  problem(config: Readonly<Record<string, unknown>>): string | undefined
}
export const PluginServerChecks = extensionPoint<PluginServerChecks>(
  'plugin-server-checks',
  undefined,
  { problem: 'function' },
  { problem: () => undefined }
)

/** Rows of a pack in the marketplace (capabilities), where the catalog does not have them. */
export interface MarketplaceRows {
  rows(): readonly (Pick<MarketplaceEntry, 'id' | 'displayName' | 'description'> & {
    readonly capabilityId: string
    readonly pluginId?: string
    /** Where its plugin comes from; undefined: it cannot be installed as a plugin. */
    readonly pluginSource?: string
    /** False: the row is left out, also one of the catalog. */
    readonly supported: boolean
  })[]
}
export const MarketplaceRows = extensionPoint<MarketplaceRows>('marketplace-rows', undefined, { rows: 'function' })
