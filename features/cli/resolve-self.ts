/**
 * Module hooks: whichever way a pack names a door of this installation (`svc-code/kernel`, `svc-code/kernel/testing`, `svc-code/client`,
 * `svc-code/packs`, `svc-code/features/<pack>`, or the file of one), it gets the instance that runs.
 */
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eraserFor, native } from './erase-types.ts'

interface Resolved {
  url: string
  format?: string
  shortCircuit?: boolean
}
interface Context {
  readonly parentURL?: string
}
/** What comes of the next hook: in the thread of the modules at once, in a thread for hooks as a promise. */
type Soon<T> = T | Promise<T>
const then = <T, R>(value: Soon<T>, next: (value: T) => R): Soon<R> => (value instanceof Promise ? value.then(next) : next(value))

type Next = (specifier: string, context: Context) => Soon<Resolved>

const here = new URL('.', import.meta.url)
const bundled = basename(here.pathname) === 'bundle'
const compiled = import.meta.url.endsWith('.js')
const root = new URL(compiled && !bundled ? '../../../' : '../../', here).href

export function resolve(specifier: string, context: Context, next: Next): Soon<Resolved> {
  const named = /^svc-code\/(kernel|kernel\/testing|client|packs|features\/[a-z0-9-]+)$/.exec(specifier)?.[1]
  if (named !== undefined) {
    const url = door(named)
    if (!existsSync(fileURLToPath(url))) {
      const importer = context.parentURL?.replace(/\?.*$/, '') ?? ''
      const from = importer.startsWith('file:') ? fileURLToPath(importer) : importer
      throw new Error(
        `Cannot find door '${specifier}' (there are kernel, kernel/testing, client, packs and features/<pack>) imported from ${from}`
      )
    }
    return { url, format: 'module', shortCircuit: true }
  }
  // What the loader of packs asks for is a file that is there, links resolved: this thread is all that a hundred of them wait for.
  if (/^file:[^?]*\.mjs(?:\?|$)/.test(specifier) && context.parentURL?.startsWith(root) && !specifier.startsWith(root))
    return { url: specifier, format: 'module', shortCircuit: true }
  return then(next(specifier, context), found => ofInstallation(versioned(found, context)))
}

/** The file of a door is the door. */
function ofInstallation(resolved: Resolved): Resolved {
  if (!resolved.url.startsWith(root)) return resolved
  const file = /^(?:dist\/)?(kernel\/index|testing\/index|features\/[a-z0-9-]+\/index)\.[jt]s$/.exec(resolved.url.slice(root.length))?.[1]
  return file === undefined ? resolved : { ...resolved, url: door(file.replace(/\/index$/, '').replace('testing', 'kernel/testing')) }
}

interface Loaded {
  format: string
  source?: unknown
  shortCircuit?: boolean
}

type NextLoad = (url: string, context: { readonly format?: string | null }) => Soon<Loaded>

/** Erases types where Node does not. Other modules are read at once: each wait would be one of this thread for a hundred packs. */
export function load(url: string, context: { readonly format?: string | null }, next: NextLoad): Soon<Loaded> {
  if (context.format === 'module' && /^file:[^?]*\.m?js(?:\?|$)/.test(url))
    return { format: 'module', source: readFileSync(fileURLToPath(url)), shortCircuit: true }
  if (native || !/^file:.*\.m?ts(?:\?|$)/.test(url)) return next(url, context)
  const file = fileURLToPath(url)
  const erase = eraserFor(file)
  if (!erase) return next(url, context)
  return { format: 'module', source: erase(readFileSync(file, 'utf8'), file), shortCircuit: true }
}

/** What a file that is read again imports of its own package is read again with it. */
function versioned(resolved: Resolved, context: Context): Resolved {
  const [parent = '', query] = (context.parentURL ?? '').split('?', 2)
  if (!query?.startsWith('svc-code=') || !resolved.url.startsWith('file:') || resolved.url.includes('?')) return resolved
  const path = (url: string) => url.slice(0, url.lastIndexOf('/node_modules/') + 1) // '' outside of packages that were installed
  return path(parent) === path(resolved.url) && !resolved.url.startsWith(root) ? { ...resolved, url: `${resolved.url}?${query}` } : resolved
}

const fileOf: Readonly<Record<string, string>> = { 'kernel/testing': 'testing/index', packs: 'features/default-packs' }

/** File of a door in the form in which this module itself runs: bundled, compiled, or as source. */
function door(name: string): string {
  if (bundled) return new URL(`${name.replace('/', '-')}.mjs`, here).href
  const file = fileOf[name] ?? `${name}/index`
  return new URL(`../../${file}.${compiled ? 'js' : 'ts'}`, here).href
}
