/** Storage of one home: the four ports behind one door, on files. */
import { join, resolve } from 'node:path'
import { inspect } from 'node:util'
import type { StoreSpec } from '../contract.ts'
import { assertSchema } from '../declared.ts'
import { developerError } from '../errors.ts'
import type { Fences, StoreParts } from './fences.ts'
import type { FileCalls } from './files.ts'
import { KvDatabase } from './kv.ts'
import { Logs } from './log.ts'
import type { EngineEnvironment, Storage } from './ports.ts'
import { Documents, openBlobs } from './whole-files.ts'

/**
 * The storage on files below `home` (made when missing): what a store acknowledges survives a power loss. Nothing is touched before the
 * first call of a store. Document, log and blob stores hold no state of their own (queues and handles are kept per file and forgotten when
 * idle), so opening one per session and agent costs nothing.
 */
export function createStorage(
  env: { readonly home: string; readonly log: Pick<EngineEnvironment['log'], 'warn'>; readonly fences?: Fences },
  /** Default: those of Node. The kv database goes its own way. */
  options: { readonly files?: FileCalls } = {}
): Storage {
  const home = resolve(env.home)
  const { log, fences = { of: () => undefined } } = env
  const parts: StoreParts = { home, log, files: options.files, fences }
  const documents = new Documents(parts)
  const logs = new Logs(parts)
  const kv = new KvDatabase(join(home, 'server'), env.log)
  const open = (spec: StoreSpec, place: { readonly namespace: string; readonly dir: string }): unknown => {
    const dir = resolve(home, place.dir)
    const { name, kind = 'kv' } = spec
    if (!/^[A-Za-z0-9_][\w.-]*$/.test(name)) throw developerError('store_name_bad', name)
    assertSchema(`value of store ${name}`, spec.value)
    switch (kind) {
      case 'document':
        return documents.open(spec, dir)
      case 'log':
        return logs.open(spec, dir)
      case 'blob':
        return openBlobs(dir, parts)
      case 'kv':
        // One database per home: the namespace alone tells where records are.
        return kv.open(spec, place.namespace)
      default:
        throw developerError('argument_odd', `store ${name}`, "the kind 'kv', 'document', 'log' or 'blob'", inspect(kind))
    }
  }
  return {
    open: open as Storage['open'], // of the kind that the spec says
    close: async () => {
      const ends = await Promise.allSettled([documents.idle(), logs.close(), kv.close()])
      const failures = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
      if (failures.length > 0) throw new AggregateError(failures, 'storage did not close cleanly')
    }
  }
}
