/** A change of a file, and why there are none: for both threads. */
import type { Static } from '../../kernel/index.ts'
import type { fileChange } from './contract.ts'

/** `path`: relative to the root, with slashes; `.`: the root itself. */
export type FileChange = Readonly<Static<typeof fileChange>>

/**
 * Why a path is not watched (any more): its root is not there, it leads out of it, there are more files than may be watched, the machine
 * has no watches left.
 */
export type Trouble = 'missing' | 'outside' | 'too_many' | 'exhausted' | 'failed'

export class WatchTrouble extends Error {
  readonly trouble: Trouble

  constructor(trouble: Trouble, message: string) {
    super(message)
    this.trouble = trouble
  }

  static of(error: unknown): WatchTrouble {
    return error instanceof WatchTrouble ? error : new WatchTrouble('failed', error instanceof Error ? error.message : String(error))
  }
}
