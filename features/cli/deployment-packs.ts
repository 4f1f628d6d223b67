/** The packs that a deployment names, imported and checked, and their options. */
import { KernelInfo, nearest, type Pack, PackControl, Relays } from '../../kernel/index.ts'
import { defaultConfig, defaultPacks, demoPacks, loadDefaultPack, loadDefaultPacks } from '../default-packs.ts'
import type { Deployment } from './deployment.ts'
import { checkPackNames, type UsageError } from './options.ts'
import { productVersion } from './version.ts'

/** Services that are there without a pack. */
export const kernelServices: readonly string[] = [KernelInfo.id, PackControl.id, Relays.id]

interface LoadOptions {
  /** Hears of what gave way to the command line. */
  readonly warn?: (text: string) => void
  /** Time limit of an import. */
  readonly importMs?: number
  /** Hears of a name in `disable`, `require` or `isolate` that is nobody's; without it that is thrown, for no server starts then. */
  readonly stranger?: (problem: UsageError) => void
}

/**
 * The packs of a deployment in activation order for ties. What cannot be imported, and what has the name of another pack, is among them as
 * a pack that fails with the reason.
 */
export async function deploymentPacks(deployment: Deployment, { warn, importMs, stranger = refuse }: LoadOptions = {}): Promise<Pack[]> {
  const packs = await loadDefaultPacks(deployment.disable, productVersion())
  if (deployment.demo) packs.push(...(await loadDefaultPacks(deployment.disable, productVersion(), demoPacks)))
  const names = Object.keys({ ...defaultPacks, ...(deployment.demo ? demoPacks : {}) })
  const failed: string[] = []
  if (deployment.load.length > 0 || Object.keys(deployment.replace).length > 0) {
    const { loadPacks } = await import('./load-pack.ts')
    const loaded = await loadPacks(deployment.load, names, { limitMs: importMs, isolation: deployment })
    failed.push(...loaded.failed)
    for (const text of loaded.gaveWay) warn?.(text)
    const { checkReplacements } = await import('./replacements.ts')
    const defaults = Object.keys(defaultPacks).map(name => () => loadDefaultPack(name))
    packs.push(...(await checkReplacements(loaded.packs, deployment, defaults)))
  }
  const known = [...new Set([...names, ...packs.map(pack => pack.name)])]
  if (failed.length === 0) checkPackNames('disable', deployment.disable, known, stranger)
  checkIsolated(deployment, names, stranger, failed.length === 0 ? known : undefined)
  const absent = failed.length > 0 && deployment.require.find(name => !known.includes(name))
  if (absent) throw new Error(`required pack '${absent}' is not there; these could not be loaded: ${failed.join('; ')}`)
  checkPackNames('require', deployment.require, known, stranger)
  return packs.filter(pack => !deployment.disable.includes(pack.name))
}

const refuse = (problem: UsageError) => {
  throw problem
}

/** Packs of the installation share objects with others: only those of `load` can run apart. `known`: undefined when some could not be loaded. */
function checkIsolated(
  { isolate }: Deployment,
  own: readonly string[],
  stranger: (problem: UsageError) => void,
  known: readonly string[] | undefined
): void {
  if (typeof isolate !== 'object') return
  const shared = isolate.find(name => own.includes(name))
  if (shared !== undefined)
    throw new Error(`[packs] isolate names '${shared}', a default pack: only packs of load can run in a process of their own`)
  if (known) checkPackNames('isolate', isolate, known, stranger)
}

/** The options of all packs by their names: those of the deployment over those of the full server. */
export function packOptions({ config }: Deployment): Deployment['config'] {
  const merged: Record<string, unknown> = { ...defaultConfig, ...config }
  for (const [name, options] of Object.entries(defaultConfig)) {
    const own = config[name]
    if (typeof own === 'object' && own !== null) merged[name] = { ...options, ...own }
  }
  return merged
}

/** What is odd about `[packs]` and stops nothing, one line each: options for packs that are not loaded. */
export function deploymentWarnings({ config, disable }: Deployment, packs: readonly Pack[]): string[] {
  const names = [...packs.map(pack => pack.name), ...disable]
  return Object.keys(config).flatMap(name => {
    if (names.includes(name)) return []
    const near = nearest(name, names, 2)
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    return [`[packs.config.${name}] in config.toml is for a pack that is not loaded${hint}`]
  })
}
