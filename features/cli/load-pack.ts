/** Loads third-party packs from paths and module names. Their `svc-code/...` imports resolve to this very installation. */
import { createRequire } from 'node:module'
import { basename, dirname, extname, isAbsolute, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { definePack, type Pack } from '../../kernel/index.ts'
import { late, waitAtMost } from '../../kernel/lifecycle/wait.ts'
import { eraserFor, native } from './erase-types.ts'
import { placeOf } from './import-place.ts'
import { watchImport } from './import-watch.ts'
import type { Isolation } from './isolation/options.ts'
import { hookModules } from './module-hooks.ts'
import { fileOf, locate, type Origin } from './pack-files.ts'

/** Time limit of an import, ms: a top-level await without end must not hold up the start. */
const importLimitMs = 10_000

let hooked = false

/** Query of a file that is read again; its imports within the package get the same (`resolve-self.ts`). */
const versionMark = 'svc-code='

interface LoadOptions {
  /** Which packs run in processes of their own; without it none does. */
  readonly isolation?: Isolation
  readonly limitMs?: number | undefined
  /** Does an import so that it harms nobody else: `watchImport`, except in a process that is the pack's own. */
  readonly watch?: typeof watchImport
}

interface LoadedPacks {
  /** In the order they are named; what cannot run is among them as a pack that fails with the reason. */
  readonly packs: Pack[]
  /** Name and reason of those. */
  readonly failed: string[]
  /** What is left out because the command line names a pack of that name, one line each. */
  readonly gaveWay: string[]
}

/**
 * Imports the modules side by side, those of the command line counting first. A file that is named twice is one module. A pack with a name in
 * `taken`, or of one before it, fails as well, under the name of its file; one whose name the command line has gives way. Never rejects.
 */
export async function loadPacks(modules: readonly Origin[], taken: readonly string[], options: LoadOptions = {}): Promise<LoadedPacks> {
  const loaded = await Promise.all(distinct(modules).map(({ spec, from }) => loadPack(spec, from, options)))
  const ofCommandLine = modules.filter(({ first }) => first).map(({ spec }) => spec)
  const names = new Set(taken)
  const packs: Pack[] = []
  const failed: string[] = []
  const gaveWay: string[] = []
  const fail = (spec: string, from: string, reason: Error) => {
    const name = freeName(nameOf(spec), names)
    packs.push(failedPack(name, reason, { spec, from }))
    failed.push(`${name}: ${reason.message}`)
    return name
  }
  for (const { spec, from, place, found } of loaded) {
    for (const pack of found instanceof Error ? [found] : found) {
      if (!(pack instanceof Error)) origins.set(pack, { spec, from })
      const other = pack instanceof Error ? undefined : packs.find(one => one.name === pack.name && !one.broken)
      if (pack instanceof Error) names.add(fail(spec, from, pack))
      else if (other && ofCommandLine.includes(originOf(other)?.spec ?? '') && !ofCommandLine.includes(spec))
        gaveWay.push(`[packs] load in config.toml names '${spec}', whose pack '${pack.name}' the command line brings already`)
      else if (names.has(pack.name)) names.add(fail(spec, from, new Error(`${place}: a pack named '${pack.name}' is there already`)))
      else {
        packs.push(pack)
        names.add(pack.name)
      }
    }
  }
  return { packs, failed, gaveWay }
}

/** Each file once, those of the command line first. */
function distinct(modules: readonly Origin[]): Origin[] {
  const files = new Set<string>()
  return [...modules.filter(({ first }) => first), ...modules.filter(({ first }) => !first)].filter(origin => {
    const file = fileOf(origin)
    if (file !== undefined && files.has(file)) return false
    if (file !== undefined) files.add(file)
    return true
  })
}

interface Found {
  readonly spec: string
  readonly from: string
  /** The file, as far as it is known. */
  readonly place: string
  readonly found: Pack[] | Error
}

/** The packs of a module: its `default` export and those in `packs`; or why there are none, with file and line. */
async function loadPack(spec: string, from: string, options: LoadOptions): Promise<Found> {
  const { isolation: { isolate = [], isolation } = {}, limitMs = importLimitMs, watch = watchImport } = options
  let place = spec
  try {
    const url = locate(spec, from)
    if (url.startsWith('file:')) place = fileURLToPath(url)
    if (isolation && (isolate === true || (isolate !== false && isolate.length > 0))) {
      const { isolatedPacks } = await import('./isolation/isolated-pack.ts')
      const all = await isolatedPacks({ spec, from }, { url, version: versions.get(url) ?? 0 }, isolation)
      const found = all.filter(pack => isolate === true || isolate.includes(pack.name))
      if (found.length === all.length) return { spec, from, place, found }
      const here = await loadPack(spec, from, { limitMs, watch })
      const others =
        here.found instanceof Error ? here.found : [...found, ...here.found.filter(pack => !found.some(one => one.name === pack.name))]
      return { ...here, found: others }
    }
    const loaded = await waitAtMost(
      watch(place, () => importModule(url)),
      limitMs
    )
    if (loaded === late) throw new Error(`the import took longer than ${limitMs} ms and was given up`)
    const found = [loaded.default, ...(Array.isArray(loaded.packs) ? loaded.packs : [])].filter(isPack)
    if (found.length === 0) throw new Error('there is no pack as its default export (made with definePack)')
    if (place !== spec || isAbsolute(place)) for (const pack of found) pack.source ??= place
    return { spec, from, place, found }
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split('\n', 1)[0] ?? '') : String(cause)
    const told = reason.startsWith(place) || /^\/\S+:\d+: /.test(reason) // by the process of the pack, or by what erased types
    const text = told ? reason : `${await placeOf(cause, place)}: ${reason}`
    return { spec, from, place, found: new Error(`${text}${commonJsHint(reason)}`, { cause }) }
  }
}

/** `npm init` makes packages whose `.js` files are no modules. */
function commonJsHint(reason: string): string {
  const isMeant = /Cannot use import statement outside a module|Unexpected token 'export'/.test(reason)
  return isMeant ? '; name the file .mjs, or put "type": "module" into its package.json' : ''
}

const origins = new WeakMap<Pack, Origin>()

/** Where a pack of `loadPacks` came from; undefined for any other. */
export function originOf(pack: Pack): Origin | undefined {
  return origins.get(pack)
}

/** Under which version a file is imported that was asked for anew: Node keeps a module under its URL for good. */
const versions = new Map<string, number>()
let lastVersion = 0

/**
 * From now on the module of this spec is read again, with the files of its package that it imports. Returns the way back: what was read before is
 * what counts.
 */
export function forgetModule(spec: string, from: string): () => void {
  let url: string
  try {
    url = locate(spec, from)
  } catch {
    return () => undefined // it is not there: the import says so
  }
  if (!url.startsWith('file:')) return () => undefined
  const before = versions.get(url)
  versions.set(url, ++lastVersion)
  const { cache } = createRequire(url)
  const dir = dirname(fileURLToPath(url))
  for (const file of Object.keys(cache)) if (file.startsWith(dir) && !file.slice(dir.length).includes('node_modules')) delete cache[file]
  return () => void (before === undefined ? versions.delete(url) : versions.set(url, before))
}

/** Stands in for a pack that cannot run: known by its name, never active. */
export function failedPack(name: string, broken: Error, origin?: Origin): Pack {
  const setup = () => {
    throw broken
  }
  const pack = { ...definePack({ name, setup }), broken }
  if (origin) origins.set(pack, origin)
  return pack
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name
  for (let n = 2; taken.has(free); n++) free = `${name}-${n}`
  return free
}

/** What a pack is called before it could say so itself: after its module or file, or after the folder of an `index.js` or `pack.js`. */
function nameOf(spec: string): string {
  const path = spec.replace(/^[a-z]+:/, '')
  const file = basename(path, extname(path))
  const name = file === 'index' || file === 'pack' ? basename(dirname(resolve(path))) : file
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-') || 'unnamed'
}

async function importModule(url: string): Promise<{ default?: unknown; packs?: unknown }> {
  if (/\.m?ts$/.test(url) && !native && !eraserFor(fileURLToPath(url))) {
    throw new Error(
      'a TypeScript pack needs Node 22.18 or newer, or TypeScript 5 in its project (npm install); or give its compiled .js file'
    )
  }
  if (!hooked) {
    hooked = true
    hookModules()
  }
  const version = versions.get(url)
  return await import(version === undefined ? url : `${url}?${versionMark}${version}`)
}

function isPack(value: unknown): value is Pack {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'pack'
}
