/** The plugins of a home: the list on disk, what each brings, and changes of it, also by other server processes. */
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { AppError, type DocumentStore, inOrder, type Logger } from '../../kernel/index.ts'
import type { AgentProfile } from '../agent/index.ts'
import { scanSkills } from '../skills/index.ts'
import { readProfiles } from '../subagents/index.ts'
import { Latest } from '../workspaces/index.ts'
import { type Installed, PluginMissing, type PluginRecord, type PluginSummary } from './contract.ts'
import type { Installer } from './installer.ts'
import type { Loaded, PluginContents } from './manifest.ts'
import type { PluginMcpServer } from './service.ts'

export interface PluginsPorts {
  readonly store: DocumentStore<Installed>
  /** `<home>/plugins` */
  readonly dir: string
  /** Loaded with the first change. */
  readonly installer: () => Promise<Installer>
  readonly log: Logger
  now(): Date
  /** A change that was made here is in force: other servers do not know yet. */
  changed(): void
}

export interface Plugin extends Loaded {
  readonly record: PluginRecord
  /** Skills in its directories. */
  readonly skillCount: number
  /** None of one that is switched off. */
  readonly profiles: readonly AgentProfile[]
}

/** A plugin that is switched on and whose files are right. */
export interface ActivePlugin extends Pick<Plugin, 'record' | 'profiles'> {
  readonly contents: PluginContents
}

const none: Installed = { version: 1, plugins: [] }

export class PluginList {
  readonly #ports: PluginsPorts
  readonly #file: Latest<Installed>
  readonly #listeners = new Set<() => void>()
  /** Why the list on disk cannot be read. */
  #fault: Error | undefined
  /** What `#plugins` was made of. */
  #installed: Installed | undefined
  #plugins: readonly Plugin[] = []
  readonly #loading = inOrder()

  constructor(ports: PluginsPorts) {
    this.#ports = ports
    this.#file = new Latest({ store: ports.store, id: 'installed', dir: ports.dir, empty: none })
  }

  /** For this pack: whoever else wants to know hears of `event.plugin.changed`, or of what was contributed anew. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** As of the last `refresh`. */
  get active(): readonly ActivePlugin[] {
    return this.#plugins.flatMap(({ contents, ...plugin }) => (plugin.record.enabled && contents ? [{ ...plugin, contents }] : []))
  }

  async mcpServers(): Promise<readonly PluginMcpServer[]> {
    await this.refresh()
    return this.active.flatMap(({ record, contents }) =>
      Object.entries(contents.mcpServers).flatMap(([server, config]) =>
        record.capabilities?.mcpServers?.[server]?.enabled === false
          ? []
          : [{ name: `plugin-${record.id}:${server}`, plugin_id: record.id, server, config, root: record.root, revision: record.integrity }]
      )
    )
  }

  /** Takes in what changed on disk since; cheap while nothing did. A list that cannot be read counts as empty: sessions go on without plugins. */
  refresh(): Promise<readonly Plugin[]> {
    return this.#loading(async () => {
      const installed = await this.#read()
      if (!isDeepStrictEqual(installed, this.#installed)) await this.#load(installed)
      return this.#plugins
    })
  }

  /** As `refresh`, for those who manage plugins: rejects when the list cannot be read. */
  async all(): Promise<readonly Plugin[]> {
    const plugins = await this.refresh()
    if (this.#fault) throw this.#fault
    return plugins
  }

  async install(source: string, signal: AbortSignal): Promise<Plugin> {
    await this.all() // before anything is fetched in vain
    const installer = await this.#ports.installer()
    const id = await installer.install(source, signal, async arrived => {
      const at = this.#ports.now().toISOString()
      await this.#file.update(({ plugins }) => {
        const before = plugins.find(each => each.id === arrived.id)
        const record: PluginRecord = {
          ...arrived,
          enabled: before?.enabled ?? true,
          installedAt: before?.installedAt ?? at,
          updatedAt: at,
          capabilities: before?.capabilities
        }
        return { version: 1, plugins: [...plugins.filter(each => each !== before), record].sort((a, b) => (a.id < b.id ? -1 : 1)) }
      })
      return arrived.id
    })
    const plugin = (await this.refresh()).find(({ record }) => record.id === id)
    if (!plugin) throw new AppError(PluginMissing) // removed again at once by somebody else
    this.#ports.changed()
    return plugin
  }

  async setEnabled(id: string, enabled: boolean): Promise<void> {
    await this.#change(id, record => ({ ...record, enabled }))
  }

  async remove(id: string): Promise<void> {
    const installer = await this.#ports.installer()
    await installer.locked(async () => {
      await this.#change(id, () => undefined)
      await installer.remove(id)
    })
  }

  /** Throws PluginMissing (40419). */
  async #change(id: string, change: (record: PluginRecord) => PluginRecord | undefined): Promise<void> {
    await this.#file.update(installed => {
      const record = installed.plugins.find(each => each.id === id)
      if (!record) throw new AppError(PluginMissing, { message: `plugin not installed: ${id}` })
      const changed = change(record)
      return { version: 1, plugins: installed.plugins.flatMap(each => (each === record ? (changed ?? []) : each)) }
    })
    await this.refresh()
    this.#ports.changed()
  }

  async #read(): Promise<Installed> {
    try {
      const installed = await this.#file.get()
      this.#fault = undefined
      return installed
    } catch (error) {
      const fault = error as Error
      if (fault.message !== this.#fault?.message) this.#ports.log.error({ err: fault }, 'no plugin is used: their list cannot be read')
      this.#fault = fault
      return none
    }
  }

  async #load(installed: Installed): Promise<void> {
    const records = [...installed.plugins].sort((a, b) => (a.id < b.id ? -1 : 1))
    this.#plugins = await Promise.all(
      records.map(async record => {
        const { loadPlugin } = await import('./manifest.ts')
        const loaded = await loadPlugin(record.root)
        if (!loaded.contents && record.enabled) {
          this.#ports.log.warn({ plugin: record.id, diagnostics: loaded.diagnostics }, 'a plugin is not used: its files are not right')
        }
        const profiles = await readProfiles((record.enabled && loaded.contents?.agents) || [], this.#ports.log)
        return { record, ...loaded, profiles, skillCount: await countSkills(loaded.contents, dirname(this.#ports.dir)) }
      })
    )
    this.#installed = installed
    for (const listener of this.#listeners) listener()
  }
}

async function countSkills(contents: PluginContents | undefined, home: string): Promise<number> {
  const counts = (contents?.skills ?? []).map(async ({ path, file }) =>
    file ? 1 : (await scanSkills(path, { source: 'extra' }, home)).skills.length
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

export function summaryOf({ record, contents, diagnostics, skillCount }: Plugin): PluginSummary {
  const servers = Object.keys(contents?.mcpServers ?? {})
  const off = record.capabilities?.mcpServers ?? {}
  const hasErrors = contents === undefined
  return {
    id: record.id,
    displayName: contents?.displayName ?? record.id,
    version: contents?.version,
    enabled: record.enabled,
    state: hasErrors ? 'error' : 'ok',
    skillCount,
    mcpServerCount: servers.length,
    enabledMcpServerCount: servers.filter(name => off[name]?.enabled !== false).length,
    hookCount: contents?.hooks.length ?? 0,
    commandCount: contents?.commands.length ?? 0,
    hasErrors,
    source: record.source,
    originalSource: record.originalSource,
    repo: record.repo,
    diagnostics: diagnostics.length > 0 ? [...diagnostics] : undefined
  }
}
