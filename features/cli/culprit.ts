/** Which pack an error comes from that nobody caught: by the files that its stack names. */
import { basename, dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DeveloperError, type Pack } from '../../kernel/index.ts'
import { ownDirectory } from './version.ts'

interface Culprit {
  readonly pack: string
  /** No other file than those of the pack is in the stack (above a refusal of the kernel): nobody else was in the middle of something. */
  readonly alone: boolean
}

const frame = /(?:^|[\s(])(file:\/\/[^\s)]+|\/[^\s)]+|[A-Za-z]:\\[^\s)]+):\d+:\d+\)?$/

/** Undefined: the stack, and those of its causes, name no file of a pack. */
export function culprit(error: unknown, packs: readonly Pick<Pack, 'name' | 'source'>[]): Culprit | undefined {
  const known: { name?: string; source?: string; folder: string }[] = packs.flatMap(({ name, source }) =>
    source === undefined ? [] : [{ name, source, folder: folderOf(source) }]
  )
  if (known.length === 0) return undefined
  known.push({ folder: ownDirectory().slice(0, -1) }) // its own files are of no pack from elsewhere, though they may lie below its folder
  for (let one = error, depth = 0; one instanceof Error && depth < 8; one = one.cause, depth++) {
    const owners = filesOf(one.stack ?? '').map(file => {
      const within = known.filter(({ folder }) => file.startsWith(folder + sep))
      const deepest = within.filter(({ folder }) => within.every(other => other.folder.length <= folder.length))
      // Packs that lie side by side are told apart by their own files; what else is in the folder may be of each of them.
      return known.find(({ source }) => source === file)?.name ?? (deepest.length === 1 ? deepest[0]?.name : undefined)
    })
    const first = owners.findIndex(owner => owner !== undefined)
    const pack = owners[first]
    if (pack === undefined) continue
    // What the kernel threw was a refusal, before it did anything.
    const through = one instanceof DeveloperError ? owners.slice(first) : owners
    return { pack, alone: depth === 0 && through.every(owner => owner === pack) }
  }
  return undefined
}

/** Files of a stack, the innermost first, without those of Node itself. */
export function filesOf(stack: string): string[] {
  return stack.split('\n').flatMap(line => {
    const place = /^\s+at /.test(line) ? frame.exec(line)?.[1] : undefined
    if (place === undefined) return []
    const file = place.replace(/[?#].*$/, '')
    try {
      return [file.startsWith('file:') ? fileURLToPath(file) : file]
    } catch {
      return [file]
    }
  })
}

/** The folder that a pack has for itself: of its file, or the one above, when that is where code is built to. */
function folderOf(source: string): string {
  const folder = dirname(source)
  return ['dist', 'build', 'lib', 'src'].includes(basename(folder)) ? dirname(folder) : folder
}
