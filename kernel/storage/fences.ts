/** Files that leases guard: what packs say about them, and changes that a server that was overtaken cannot make. What stores on files share. */
import { basename, relative } from 'node:path'
import type { Guard } from '../lifecycle/guard.ts'
import type { Logger } from '../log/log.ts'
import { type FileCalls, type FileContent, nodeFiles, type ReplaceOptions, removeFile, replaceFile, unlessMissing } from './files.ts'
import { isMissing } from './look.ts'
import { notSaved, unsaved } from './refusals.ts'

/** What writes of a file that a lease guards have to pass. */
export interface Fence {
  /** Rejects with LeaseLost unless the lease is ours: what was done before the call, nobody has overtaken. Undefined: that is sure at once. */
  check(): Promise<void> | undefined
  /** The same, by the disk. */
  look(): Promise<void>
  /** A path for a temporary file, from where it can be renamed only as long as the lease is ours. */
  temporary(): Promise<string>
  /** The holder before may live, and have files open. */
  readonly overtaken: boolean
}

export interface Fences {
  /** The lease that guards a file, when one of this process does. */
  of(file: string): Fence | undefined
}

/**
 * What packs say about files: the first that knows a lease of one. A rule that throws is a fault of its pack. One that has ever known a lease
 * may guard the file, which is not written then; any other has no say.
 */
export class FenceRules implements Fences {
  readonly #guard: Guard
  /** `isUsed`: it has known a lease. */
  readonly #rules = new Set<Fences & { readonly pack: string; isUsed: boolean }>()

  constructor(guard: Guard) {
    this.#guard = guard
  }

  add(pack: string, of: Fences['of']): () => void {
    const rule = { pack, of, isUsed: false }
    this.#rules.add(rule)
    return () => void this.#rules.delete(rule)
  }

  of(file: string): Fence | undefined {
    const what = 'rule of fences'
    for (const rule of this.#rules) {
      try {
        const fence = this.#guard.run(rule.pack, what, () => rule.of(file))
        rule.isUsed ||= fence !== undefined
        if (fence) return fence
      } catch (cause) {
        this.#guard.report(rule.pack, what, cause)
        if (rule.isUsed) throw unsaved(`whether another server has taken over ${basename(file)} cannot be told`, cause)
      }
    }
    return undefined
  }
}

/** As `replaceFile`; with a lease that was lost it rejects with LeaseLost, and nothing has changed. */
export async function replaceFenced(file: string, content: FileContent, fence: Fence | undefined, options: ReplaceOptions): Promise<void> {
  try {
    await replaceFile(file, content, fence ? { ...options, temporary: await fence.temporary() } : options)
  } catch (error) {
    if (fence && isMissing(error)) await fence.look()
    throw error
  }
}

/** Moves what cannot be used out of the way, for a person to look at: `<path>.damaged-<moment>`. Undefined when it is not there. */
export async function quarantineFile(path: string, files: FileCalls = nodeFiles, fence?: Fence): Promise<string | undefined> {
  const quarantined = `${path}.damaged-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  return (await takeAway(path, quarantined, files, fence)) ? quarantined : undefined
}

/** As `removeFile`; with a lease that was lost it rejects with LeaseLost, and nothing has changed. */
export function removeFenced(file: string, fence: Fence | undefined, files: FileCalls = nodeFiles): Promise<boolean> {
  return takeAway(file, undefined, files, fence)
}

/** Renames or removes a file; false when it is not there. With a fence in two steps: the first one finds no place once the lease is lost. */
async function takeAway(file: string, to: string | undefined, files: FileCalls, fence?: Fence): Promise<boolean> {
  const move = async (from: string) => (to === undefined ? removeFile(from, files) : await moved(from, to, files))
  if (!fence) return move(file)
  const temporary = await fence.temporary()
  if (await moved(file, temporary, files)) return move(temporary)
  await fence.look()
  return false
}

async function moved(from: string, to: string, files: FileCalls): Promise<boolean> {
  return (await unlessMissing(files.rename(from, to).then(() => true))) ?? false
}

/** What the stores on files of one home share. */
export interface StoreParts {
  /** Texts of logs and errors name files relative to it. */
  readonly home: string
  readonly log: Pick<Logger, 'warn'>
  /** Default: those of Node. */
  readonly files?: FileCalls | undefined
  readonly fences: Fences
}

/** What texts call a file or directory of the home. */
export const nameIn = ({ home }: Pick<StoreParts, 'home'>, file: string): string => relative(home, file) || '.'

/** Does work of a store with a file (or directory) of the home; its failures are told as `notSaved` does. */
export async function storing<T>(parts: Pick<StoreParts, 'home'>, file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw notSaved(nameIn(parts, file), error)
  }
}
