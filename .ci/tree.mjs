/** The sources of the project as the checks see them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const roots = ['kernel', 'features', 'client', 'testing', 'examples', 'test', '.ci']

/** Reads everything below `root` once. Paths are relative to it, with forward slashes. */
export function readTree(root) {
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
  const sources = paths.filter(name => /\.(ts|mjs)$/.test(name))
  const files = new Map(sources.map(path => [path, { path, text: readFileSync(join(root, path), 'utf8') }]))
  const packs = paths.flatMap(path => /^features\/([^/]+)\/pack\.ts$/.exec(path)?.[1] ?? [])
  return { root, pkg: readJson(join(root, 'package.json')) ?? {}, lock: readJson(join(root, 'package-lock.json')), paths, files, packs }
}

/** A finding of a check, printed as `file:line text`. */
export function finding(file, line, text) {
  return { file, line, text }
}

/** Tests and checks; everything else is the product. */
export function isTest(path) {
  return path.startsWith('test/') || path.startsWith('.ci/') || path.endsWith('.test.ts')
}

/** Line of a place in a text, from 1. */
export function lineAt(text, index) {
  return text.slice(0, index).split('\n').length
}

function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}
