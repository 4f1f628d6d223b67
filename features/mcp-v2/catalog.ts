/** The configured servers as clients manage them: files first, then plugins. */
import { isAbsolute } from 'node:path'
import { invalid, type Static } from '../../kernel/index.ts'
import { type Entry, effective, type Mcp, redacted } from '../mcp/index.ts'
import type { Locator, ManagedServer } from './contract.ts'
import { missing } from './user-file.ts'

/**
 * Of several files with one name the last one counts; a plugin keeps its entry beside a file's of the same name. Throws 40001 (detail at `field`)
 * for a directory that can be none.
 */
export async function catalog(mcp: Mcp, cwd: string | undefined, field = 'query.cwd'): Promise<readonly Entry[]> {
  if (cwd !== undefined && (!isAbsolute(cwd) || cwd.includes('\0'))) throw invalid([{ path: field, message: 'must be an absolute path' }])
  const entries = await mcp.entries(cwd)
  return [...effective(entries.filter(({ source }) => source === 'global')), ...entries.filter(({ source }) => source === 'plugin')]
}

/** Throws McpServerMissing (40408). */
export function located(entries: readonly Entry[], locator: Static<typeof Locator>): Entry {
  if (locator.source === 'global') {
    const { name } = locator
    const entry = entries.find(each => each.source === 'global' && each.name === name)
    if (!entry) throw missing(name)
    return entry
  }
  const { pluginId, serverName } = locator
  const entry = entries.find(({ plugin }) => plugin?.id === pluginId && plugin.name === serverName)
  if (!entry) throw missing(`${pluginId}:${serverName}`)
  return entry
}

/** Several enabled entries run under this name: which of them is meant, nobody can say. */
export const isShared = (entries: readonly Entry[], { name }: Entry): boolean =>
  entries.filter(each => each.name === name && each.config.enabled !== false).length > 1

export const sharedText = (name: string) => `the name ${name} is shared by several enabled servers`

export function locatorOf({ name, plugin }: Entry): Static<typeof Locator> {
  return plugin ? { source: 'plugin', pluginId: plugin.id, serverName: plugin.name } : { source: 'global', name }
}

/** Without secrets; empty where it cannot be used. */
export const shownConfig = ({ config, problem }: Entry): Record<string, unknown> => (problem === undefined ? redacted(config) : {})

/** As it stands in the file. */
function wholeConfig({ config, problem, given }: Entry) {
  return problem === undefined ? config : typeof given === 'object' && !Array.isArray(given) ? { ...given } : {}
}

export function managed(entry: Entry): Static<typeof ManagedServer> {
  const { name, source, origin, mutable, plugin } = entry
  const shown = mutable ? wholeConfig(entry) : shownConfig(entry)
  return { name, config: shown, source, origin, mutable, ...(plugin ? { plugin } : {}) }
}

/** Changes go to the user's file alone. `field`: where the request names the server. */
export function assertWritable(entries: readonly Entry[], name: string, field: 'body.name' | 'params.name'): void {
  const own = entries.find(each => each.source === 'global' && each.name === name)
  const readOnly = (owner: string) => invalid([{ path: field, message: `${name} is read-only: it belongs to ${owner}` }])
  if (own && !own.mutable) throw readOnly('the project')
  const shadows = field === 'body.name' // a new entry, which may have the name of a plugin's
  if (!own && !shadows && entries.some(each => each.name === name)) throw readOnly('a plugin')
}
