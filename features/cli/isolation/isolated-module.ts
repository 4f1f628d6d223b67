/** Modules whose packs run in processes of their own. One that did not change has the same packs as before. */
import type { Pack } from '../../../kernel/index.ts'
import { loadIsolated } from './isolated-pack.ts'
import type { IsolationOptions, Origin } from './options.ts'

const modules = new Map<string, Promise<Pack[]>>()

/** `version`: another one is read anew. Rejects with why the module has no packs. */
export function isolatedPacks(origin: Origin, version: string, options: IsolationOptions): Promise<Pack[]> {
  const key = JSON.stringify([version, options])
  const known = modules.get(key)
  if (known) return known
  const loading = loadIsolated(origin, options)
  modules.set(key, loading)
  loading.catch(() => modules.delete(key)) // the next one may find what was missing
  return loading
}
