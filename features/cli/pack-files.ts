/** From what an operator or author names (a path, a module, a directory) to the file of a pack. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** A path or module, as it was named, and the directory from which. */
export interface Origin {
  readonly spec: string
  readonly from: string
  /** Named on the command line: it counts before what the file names. */
  readonly first?: boolean
}

/** The URL of what is imported; of a file with its links resolved, as stacks name it. */
export function locate(spec: string, from: string): string {
  const path = isAbsolute(spec) ? spec : resolve(from, spec)
  if (isAbsolute(spec) || spec.startsWith('.') || existsSync(path)) {
    if (!existsSync(path)) throw new Error(`there is no file ${path}`)
    return urlOf(statSync(path).isDirectory() ? entryOf(path) : path)
  }
  const installed = join(from, installedDir, 'node_modules', spec)
  if (existsSync(installed)) return urlOf(entryOf(installed))
  try {
    const found = createRequire(join(from, 'package.json')).resolve(spec)
    return isAbsolute(found) ? urlOf(found) : spec // a built-in module has no file
  } catch {
    return spec // a module that only `import` can resolve; a failure there names the spec
  }
}

const urlOf = (path: string) => pathToFileURL(realpathSync(path)).href

/** Where `svc-code pack add` installs packages, below the home. */
export const installedDir = 'pack-modules'

/** The file of a directory that its author edits: `pack` or `index` as `.ts` or `.js`, else what is built. */
export function sourceOf(dir: string): string {
  const names = ['pack.ts', 'index.ts', 'src/pack.ts', 'src/index.ts', 'pack.js', 'index.js', 'pack.mjs', 'index.mjs']
  return names.map(name => join(dir, name)).find(file => existsSync(file)) ?? entryOf(dir)
}

/** The file that a package or directory is entered by: what its package.json says, else `pack` or `index` as `.js` or `.ts`. */
export function entryOf(dir: string): string {
  const manifest = join(dir, 'package.json')
  const { exports: doors, main } = existsSync(manifest) ? (JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, unknown>) : {}
  const named = doorOf(doors) ?? (typeof main === 'string' ? main : undefined)
  const names = [...(named === undefined ? [] : [named]), 'pack.js', 'index.js', 'pack.ts', 'index.ts', 'pack.mjs', 'index.mjs']
  const found = names.map(name => join(dir, name)).find(file => existsSync(file))
  if (found === undefined) throw new Error(`${dir} has no ${names.join(', ')}`)
  return found
}

/** The file of `.` in the `exports` of a package. */
function doorOf(doors: unknown): string | undefined {
  if (typeof doors === 'string') return doors
  if (typeof doors !== 'object' || doors === null) return undefined
  const conditions = doors as { readonly [name in '.' | 'node' | 'import' | 'default']?: unknown }
  return doorOf(conditions['.'] ?? conditions.node ?? conditions.import ?? conditions.default)
}

/** The file that is imported, links resolved; undefined for what has none, or cannot be found. */
export function fileOf({ spec, from }: Origin): string | undefined {
  try {
    const url = locate(spec, from)
    return url.startsWith('file:') ? fileURLToPath(url) : undefined
  } catch {
    return undefined // the import says why
  }
}
