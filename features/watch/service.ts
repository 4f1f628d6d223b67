/** What other packs get: changes of files, without a watcher of their own. */
import { serviceToken } from '../../kernel/index.ts'
import type { FileChange, WatchTrouble } from './change.ts'

export type { FileChange, Trouble } from './change.ts'
export { WatchTrouble } from './change.ts'

export interface WatchRequest {
  /** Absolute. Links are resolved; what lies outside is never watched. */
  readonly root: string
  /** Relative to the root, with slashes, normalised; empty or `.`: the root. It need not be there. */
  readonly path?: string
  /** Default true. False: the path and its direct children. */
  readonly recursive?: boolean
}

export interface WatchListener {
  /** In order, some 50 ms after the first of them. */
  changed(changes: readonly FileChange[]): void
  /** So many changes happened that are not known one by one: look again. */
  unknown(count: number): void
  /** Nothing more is told. */
  lost?(trouble: WatchTrouble): void
}

/** File watching. Who watches the same path shares one watcher. What is inside a `.git` directory is left out, links are not followed. */
export interface FileWatches {
  /** Resolves when every change from now on is told, to the undo. Rejects with WatchTrouble; then nothing is watched. */
  watch(request: WatchRequest, listener: WatchListener): Promise<() => void>
}
export const FileWatches = serviceToken<FileWatches>('file-watches', { watch: 'notify' })
