/** fs:diff: a file or directory against the last commit, as a unified diff. */
import { join, posix, relative, sep } from 'node:path'
import { AppError, type DataOf, headOf } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { missing, pin, withPin } from '../fs/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import { collect, type Output, type Repository, repositoryAt } from './command.ts'
import type { diffFile } from './contract.ts'
import { withCopies } from './copies.ts'
import { MAX_BYTES, MAX_CHARS, newFile } from './new-file.ts'
import { fieldsOf } from './status.ts'

/** Names of changed files; what is beyond them is left out. */
const LISTED_BYTES = 1024 * 1024

const options = ['--no-ext-diff', '--no-textconv', '--no-color', '--submodule=short', '--ignore-submodules=dirty']

/** Throws PathMissing (40409) for what is neither there nor tracked, PathOutside (41304), PathDenied (40411), GitUnavailable (40908). */
export async function diffOf(root: Root, path: string, signal: AbortSignal): Promise<DataOf<typeof diffFile>> {
  const { dir, place } = await placeOf(root, path)
  const found = await repositoryAt(dir, signal)
  const repository = { ...found, cwd: found.top }
  const inside = relative(found.top, place) || '.'
  const held = await pin(root, path).catch((error: unknown) => {
    if (isMissing(error)) return undefined // deleted, perhaps
    throw error
  })
  try {
    const born = (await collect(repository, ['rev-parse', '--verify', '--quiet', 'HEAD'], signal, 1024, [0, 1])).text !== ''
    if (born) {
      const { text, cut } = await changes(repository, root, inside, signal)
      if (text !== '' || cut) return bounded(path, text, cut)
    }
    const known = (await collect(repository, ['ls-files', '-z', '--', inside], signal, 4096)).text !== ''
    if (known && born) return { path, diff: '', truncated: false }
    if (!held) throw missing(path)
    if (!held.stats.isFile()) return { path, diff: '', truncated: false }
    const added = await newFile(held, slashed(relative(root.real, place)))
    return bounded(path, added.text, added.cut)
  } finally {
    await held?.close()
  }
}

const isMissing = (error: unknown) => AppError.is(error) && error.code === PathMissing.code
const slashed = (path: string) => path.split(sep).join('/')

/** Where a path is, and the nearest directory above it that is there; links on the way are resolved, it may be one itself. */
async function placeOf(root: Root, path: string): Promise<{ readonly dir: string; readonly place: string }> {
  for (let above = posix.dirname(path); ; above = posix.dirname(above)) {
    const dir = await withPin(root, above, async ({ real, stats }) => (stats.isDirectory() ? real : undefined)).catch((error: unknown) => {
      if (above === '.' || !isMissing(error)) throw error
      return undefined
    })
    if (dir !== undefined) return { dir, place: join(dir, posix.relative(above, path)) }
  }
}

/** What git says about the files that it knows. It names those that changed; what they say it reads from copies. */
async function changes(repository: Repository, root: Root, inside: string, signal: AbortSignal): Promise<Output> {
  const listed = await collect(repository, ['diff', ...options, '--raw', '--no-renames', '-z', 'HEAD', '--', inside], signal, LISTED_BYTES)
  const changed = new Set([...fieldsOf(listed.text)].filter((_, at) => at % 2 === 1)) // each behind its modes and ids
  if (changed.size === 0) return { text: '', cut: listed.cut }
  return await withCopies(repository, root, changed, signal, async ({ repository: copied, paths, cut }) => {
    if (paths.length === 0) return { text: '', cut }
    const args = ['diff', ...options, '--find-renames', ...labels(repository, root), 'HEAD', '--', ...paths]
    const shown = await collect(copied, args, signal, MAX_BYTES)
    return { text: shown.text, cut: cut || shown.cut || listed.cut }
  })
}

/** Options by which names count from the workspace, wherever the repository begins. */
function labels({ top }: Repository, root: Root): string[] {
  const above = slashed(relative(top, root.real))
  if (above !== '' && !above.startsWith('../') && above !== '..') return [`--relative=${above}/`, '--src-prefix=a/', '--dst-prefix=b/']
  const below = top === root.real ? '' : `${slashed(relative(root.real, top))}/`
  return [`--src-prefix=a/${below}`, `--dst-prefix=b/${below}`]
}

function bounded(path: string, text: string, cut: boolean): DataOf<typeof diffFile> {
  const long = text.length > MAX_CHARS
  // The last line of what is shown is whole.
  const diff = long || cut ? headOf(text, text.lastIndexOf('\n', MAX_CHARS - 1) + 1 || MAX_CHARS) : text
  return { path, diff, truncated: long || cut }
}
