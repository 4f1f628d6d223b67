/** Storage of one home: the four ports behind one door. */
import { resolve } from 'node:path'
import type { StoreSpec } from '../contract.ts'
import type { Logger } from '../log/log.ts'
import type { Sync } from './atomic.ts'
import { openBlobs } from './blob.ts'
import { Documents } from './document.ts'
import { Kvs } from './kv.ts'
import { Logs } from './log.ts'
import type { Storage, StoreOf } from './ports.ts'

export { type ReplaceOptions, replaceFile, type Sync } from './atomic.ts'
export { BlobMissing, BlobTooLarge } from './blob.ts'
export type { BlobInfo, BlobStore, DocumentStore, KeyRange, KvOp, KvStore, LogStore, Storage, StoreOf } from './ports.ts'

export interface StorageOptions {
  /** Home directory; made when missing. */
  readonly home: string
  readonly log: Pick<Logger, 'warn'>
  /** What "on disk" means: `fsync` (default) survives power loss, `write` only the end of the process (`kill -9`). */
  readonly sync?: Sync
}

/**
 * Opens the stores of one home. Nothing is touched before the first call of a store. Document, log and blob stores hold no state of
 * their own (queues and handles are kept per file and forgotten when idle), so opening one per session and agent costs nothing.
 */
export function createStorage(options: StorageOptions): Storage {
  const home = resolve(options.home)
  const shared = { home, log: options.log, sync: options.sync ?? 'fsync' } as const
  const documents = new Documents(shared)
  const logs = new Logs(shared)
  const kvs = new Kvs(shared)
  const openStore = (spec: StoreSpec, place: { readonly namespace: string; readonly dir: string }): unknown => {
    const dir = resolve(home, place.dir)
    switch (spec.kind) {
      case 'document':
        return documents.open(spec, dir)
      case 'log':
        return logs.open(spec, dir)
      case 'blob':
        return openBlobs(dir, shared)
      default:
        // One database per home: the namespace alone tells where records are.
        return kvs.open(spec, place.namespace)
    }
  }
  return {
    open: <S extends StoreSpec>(spec: S, place: { readonly namespace: string; readonly dir: string }) =>
      openStore(spec, place) as StoreOf<S>,
    close: async () => {
      const ends = await Promise.allSettled([documents.idle(), logs.close(), kvs.close()])
      const failures = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
      if (failures.length > 0) throw new AggregateError(failures, 'storage did not close cleanly')
    }
  }
}
