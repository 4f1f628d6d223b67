/**
 * Loads the files of the bundle beside it, with the code that V8 kept of them when the bundle was built: reading and compiling their text
 * again would be the greater part of a start. The kept code is used only for the very text and by the very Node it was made from.
 */
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createRequire, register } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

/** As ES2024 has it; the library that is compiled for is older. */
type Resizable = ArrayBuffer & { readonly maxByteLength: number; resize(bytes: number): void }

type Exports = Record<string, unknown>
type Body = (exports: Exports, require: (name: string) => unknown, module: { exports: Exports }, file: string, dir: string) => void

/** Where the code of a file is among the kept bytes, and the digest of the text it was made from. */
type Kept = Readonly<Record<string, readonly [start: number, end: number, digest: string]>>

const dir = __dirname
const keptFile = join(dir, 'code.bin')
const head = Buffer.from('(function (exports, require, module, __filename, __dirname) {')
const tail = Buffer.from('\n})')
const nodeRequire = createRequire(join(dir, 'load.js'))
const modules = new Map<string, { exports: Exports }>()
const scripts = new Map<string, { readonly script: Script; readonly digest: string }>()
let kept: Kept | undefined

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

/**
 * Has Node begin to start its thread of module hooks, for which whoever registers hooks stands still; here it starts beside the loading of
 * the bundle. For processes that will import packs. Node begins before it reads what is to be registered.
 */
export function startHooks(): void {
  if (Number.parseInt(process.versions.node, 10) >= 24) return // hooks then run in this thread (`module-hooks.ts`)
  const never = {
    toString(): string {
      throw new Error('nothing is registered yet')
    }
  }
  try {
    register(never as string, 'data:')
  } catch {
    // as intended
  }
}

function requireFrom(name: string): unknown {
  if (name === './load.js') return { $import }
  return name.startsWith('./') ? load(name.slice(2)) : nodeRequire(name)
}

function compile(name: string): Body {
  const bytes = bytesOf(join(dir, name), head, tail)
  const text = bytes.toString('latin1')
  const digest = createHash('sha1').update(bytes).digest('base64')
  const [start, end, keptDigest] = kept?.[name] ?? [0, 0]
  const cachedData = keptDigest === digest ? bytesOf(keptFile, empty, empty, start, end) : undefined
  const script = underUsualFlags(() => new Script(text, { filename: pathToFileURL(join(dir, name)).href, cachedData }))
  scripts.set(name, { script, digest })
  return script.runInThisContext() as Body
}

const empty = Buffer.alloc(0)

const heapLimit = [...(process.env.NODE_OPTIONS ?? '').split(' '), ...process.execArgv].findLast(word =>
  /^--max[-_]old[-_]space[-_]size=\d+$/.test(word)
)

/**
 * V8 takes kept code only under the flags it was made with, a limit of the heap among them, which says nothing about code. The heap of this
 * thread has its limit by then; the flag stands again afterwards, for threads to come.
 */
function underUsualFlags<T>(work: () => T): T {
  if (heapLimit === undefined) return work()
  const { setFlagsFromString } = nodeRequire('node:v8') as typeof import('node:v8')
  setFlagsFromString('--max-old-space-size=0')
  try {
    return work()
  } finally {
    setFlagsFromString(heapLimit)
  }
}

/**
 * Where files are read to, one after the other: a buffer for each would be garbage that stays until memory is short. Resized for each file,
 * because what is cut off goes back to the system at once.
 */
const room = new (ArrayBuffer as unknown as new (bytes: number, options: { maxByteLength: number }) => Resizable)(0, {
  maxByteLength: 1 << 21
})

/** Bytes `start` to `end` of a file (default: all), between two others; valid until the next call. */
function bytesOf(file: string, before: Buffer, after: Buffer, start = 0, end?: number): Buffer {
  const fd = openSync(file, 'r')
  try {
    const size = (end ?? fstatSync(fd).size) - start
    const length = before.length + size + after.length
    const fits = length <= room.maxByteLength
    if (fits) room.resize(length)
    const all = fits ? Buffer.from(room, 0, length) : Buffer.allocUnsafeSlow(length)
    before.copy(all)
    after.copy(all, before.length + readSync(fd, all, before.length, size, start))
    return all
  } finally {
    closeSync(fd)
  }
}

interface Index {
  readonly madeBy: string
  readonly files: Kept
}

/** V8 looks at its own version alone, which releases of Node share although their code is not the same: it would crash. */
const thisNode = (): string =>
  [process.version, process.versions.v8, process.platform, process.arch, statSync(process.execPath).size].join(' ')

/** The index stands at the end, its length in the last eight bytes. Without the file the start takes longer, no more. */
function readKept(): Kept {
  try {
    const size = statSync(keptFile).size
    const length = Number(bytesOf(keptFile, empty, empty, size - 8, size).toString('latin1'))
    const { madeBy, files } = JSON.parse(bytesOf(keptFile, empty, empty, size - 8 - length, size - 8).toString('latin1')) as Index
    return madeBy === thisNode() ? files : {}
  } catch {
    return {}
  }
}

/** Keeps the code of every file that has run so far, functions that were called included, for the processes to come. */
export function keepCode(): void {
  const parts: Buffer[] = []
  const files: Record<string, Kept[string]> = {}
  let at = 0
  for (const [name, { script, digest }] of scripts) {
    const part = script.createCachedData()
    files[name] = [at, at + part.length, digest]
    parts.push(part)
    at += part.length
  }
  const last = JSON.stringify({ madeBy: thisNode(), files } satisfies Index)
  writeFileSync(`${keptFile}.new`, Buffer.concat([...parts, Buffer.from(`${last}${String(last.length).padStart(8)}`)]))
  renameSync(`${keptFile}.new`, keptFile)
}
