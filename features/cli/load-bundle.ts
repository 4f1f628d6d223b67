/**
 * Loads the files of the bundle beside it, with the code that V8 kept of them when the bundle was built: reading and compiling their text
 * again would be the greater part of a start. The kept code is used only for the very text and the version of V8 it was made from.
 */
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

type Exports = Record<string, unknown>
type Body = (exports: Exports, require: (name: string) => unknown, module: { exports: Exports }, file: string, dir: string) => void

/** Where the code of a file is among the kept bytes, and the digest of the text it was made from. */
type Kept = Readonly<Record<string, readonly [start: number, end: number, digest: string]>>

const dir = __dirname
const keptFile = join(dir, 'code.bin')
const nodeRequire = createRequire(join(dir, 'load.js'))
const modules = new Map<string, { exports: Exports }>()
const scripts = new Map<string, { readonly script: Script; readonly digest: string }>()
let kept: { readonly index: Kept; readonly bytes: Buffer } | undefined

/** The exports of a file of the bundle, which runs once per process, whoever asks. */
export function load(name: string): Exports {
  // Node maps stacks to the sources only for what it loads itself.
  if (process.sourceMapsEnabled) return nodeRequire(`./${name}`) as Exports
  const known = modules.get(name)
  if (known) return known.exports
  kept ??= readKept()
  const module = { exports: {} }
  modules.set(name, module)
  try {
    compile(name)(module.exports, requireFrom, module, join(dir, name), dir)
  } catch (error) {
    modules.delete(name)
    throw error
  }
  return module.exports
}

/** What `import()` is in the files of the bundle: Node does it for modules that it has loaded itself. */
export const $import = (name: string): Promise<unknown> => import(name)

function requireFrom(name: string): unknown {
  if (name === './load.js') return { $import }
  return name.startsWith('./') ? load(name.slice(2)) : nodeRequire(name)
}

function compile(name: string): Body {
  const text = readFileSync(join(dir, name), 'latin1') // the bundle is ASCII
  const digest = digestOf(text)
  const place = kept?.index[name]
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: pathToFileURL(join(dir, name)).href,
    cachedData: place?.[2] === digest ? kept?.bytes.subarray(place[0], place[1]) : undefined
  })
  scripts.set(name, { script, digest })
  return script.runInThisContext() as Body
}

const digestOf = (text: string): string => createHash('sha1').update(text, 'latin1').digest('base64')

/** First line: the index; then the bytes. Without the file the start takes longer, no more. */
function readKept(): typeof kept {
  try {
    const all = readFileSync(keptFile)
    const end = all.indexOf(10)
    return { index: JSON.parse(all.toString('latin1', 0, end)) as Kept, bytes: all.subarray(end + 1) }
  } catch {
    return { index: {}, bytes: Buffer.alloc(0) }
  }
}

/** Keeps the code of every file that has run so far, functions that were called included, for the processes to come. */
export function keepCode(): void {
  const parts: Buffer[] = []
  const index: Record<string, Kept[string]> = {}
  let at = 0
  for (const [name, { script, digest }] of scripts) {
    const part = script.createCachedData()
    index[name] = [at, at + part.length, digest]
    parts.push(part)
    at += part.length
  }
  writeFileSync(`${keptFile}.new`, Buffer.concat([Buffer.from(`${JSON.stringify(index)}\n`), ...parts]))
  renameSync(`${keptFile}.new`, keptFile)
}
