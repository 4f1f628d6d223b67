/** The sources of the project as the checks see them: files, imports, and where each import leads. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { importsOf, lex } from './lex.mjs'

const roots = ['kernel', 'features', 'examples', 'test', '.ci']

/** Reads everything below `root` once. Paths are relative to it, with forward slashes. */
export function readTree(root) {
  const pkg = readJson(join(root, 'package.json')) ?? {}
  const paths = roots
    .filter(dir => existsSync(join(root, dir)))
    .flatMap(dir =>
      readdirSync(join(root, dir), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry =>
          join(entry.parentPath ?? entry.path, entry.name)
            .slice(root.length + 1)
            .replaceAll('\\', '/')
        )
    )
    .sort()
  const files = new Map()
  for (const path of paths.filter(name => /\.(ts|mjs)$/.test(name))) {
    const text = readFileSync(join(root, path), 'utf8')
    const tokens = lex(text)
    const imports = importsOf(tokens).map(one => ({ ...one, to: resolveImport(path, one.specifier, pkg.name) }))
    files.set(path, { path, text, tokens, imports })
  }
  const packs = new Map()
  for (const path of paths) {
    const name = packOf(path)
    if (name !== undefined && path.endsWith('/pack.ts')) packs.set(name, `features/${name}`)
  }
  return { root, pkg, lock: readJson(join(root, 'package-lock.json')), paths, files, packs }
}

/** A finding of a check, printed as `file:line text`. */
export function finding(file, line, text) {
  return { file, line, text }
}

/** Name of the folder in `features/` that holds the file; the command line is no pack. */
export function packOf(path) {
  const name = /^features\/([^/]+)\//.exec(path)?.[1]
  return name === 'cli' ? undefined : name
}

/** The composition root puts packs together and may see everything but tests. */
export function isRoot(path) {
  return path === 'features/main.ts' || path === 'features/default-packs.ts' || path.startsWith('features/cli/')
}

/**
 * Where an import leads: `{ file }` inside the project, `{ npm }` a package name, `{ node }` a built-in module, or undefined for a
 * computed name.
 */
function resolveImport(from, specifier, self) {
  if (specifier === undefined) return undefined
  if (specifier.startsWith('.')) return { file: posix.normalize(posix.join(posix.dirname(from), specifier)) }
  if (specifier.startsWith('node:')) return { node: specifier }
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
  if (name !== self) return { npm: name }
  const door = specifier.slice(name.length + 1)
  if (door === 'kernel') return { file: 'kernel/index.ts' }
  if (door === 'kernel/testing') return { file: 'kernel/testing.ts' }
  return { file: `${door}/index.ts` }
}

function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}
