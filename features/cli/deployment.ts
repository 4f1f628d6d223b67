/** Where a deployment comes from: flags first, then environment, then `[packs]` in `<home>/config.toml`. */
import { join, resolve } from 'node:path'
import { readRegularFile } from '../../kernel/home.ts'
import { knownHome } from '../../kernel/index.ts'
import type { FlagValues } from './flags.ts'
import { type Isolation, type IsolationOptions, isolationOptions, type Origin } from './isolation/options.ts'

export const demoModel = 'demo/demo'

export interface Deployment extends Isolation {
  readonly home: string
  readonly load: readonly Origin[]
  /** The demo model is there. */
  readonly demo?: boolean
  readonly disable: readonly string[]
  readonly require: readonly string[]
  /** Which pack provides a service in place of its default pack: pack names by service id. */
  readonly replace: Readonly<Record<string, string>>
  /** Options by pack name. */
  readonly config: Readonly<Record<string, unknown>>
  /** How often a pack may fail before it is taken out; undefined: as often as it likes. */
  readonly faults?: { readonly limit: number; readonly within_s: number } | undefined
}

/** `--home`, else SVC_CODE_HOME, else `~/.svc-code`; absolute. Throws when the user has no home directory to put it in. */
export function homeOf(flags: FlagValues, env: NodeJS.ProcessEnv): string {
  const given = flags.home ?? env.SVC_CODE_HOME
  if (given) return resolve(given)
  const user = knownHome()
  if (user === undefined) throw new Error('HOME is empty, not set or no absolute path: name the home with --home or SVC_CODE_HOME')
  return join(user, '.svc-code')
}

/** Comma-separated environment value as a list. */
export function listOf(value: string | undefined): string[] {
  return (value ?? '')
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')
}

/**
 * Reads `[packs]`. Throws on any fault of a file that mentions packs (no TOML, unknown keys, wrong types), with file, line and column:
 * going on would load what the operator may have disabled.
 */
export async function readDeployment(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<Deployment> {
  const home = homeOf(flags, env)
  const file = join(home, 'config.toml')
  const { load, disable, require, ...others } = await packsTable(file)
  return {
    home,
    load: [...load.map(spec => ({ spec, from: home })), ...(flags.pack ?? []).map(spec => ({ spec, from: process.cwd(), first: true }))],
    demo: flags.demo ?? false,
    disable: [...disable, ...(flags.disable ?? [])],
    require: [...require, ...(flags.require ?? [])],
    ...others
  }
}

interface PacksTable extends Omit<Deployment, 'home' | 'load' | 'demo'> {
  readonly load: readonly string[]
}

const tableKeys: readonly string[] = ['load', 'disable', 'require', 'replace', 'config', 'faults', 'isolate', 'isolation']

async function packsTable(file: string): Promise<PacksTable> {
  const text = textOf(file)
  const parsed = /packs|\\u/i.test(text) ? await parsedToml(file, text) : {} // a key may be spelled with escapes
  const fault = (path: readonly string[], problem: string): Error => {
    const { line, column } = placeOf(text, path)
    return new Error(`${file}:${line}:${column}: ${path.join('.')} ${problem}`)
  }
  const record = (value: unknown, path: readonly string[]): Record<string, unknown> => {
    if (value === undefined) return {}
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(path, 'must be a table')
    return { ...value }
  }
  const table = record(parsed.packs, ['packs'])
  const odd = Object.keys(table).find(key => !tableKeys.includes(key))
  if (odd !== undefined) throw fault(['packs', odd], `is unknown; [packs] has ${tableKeys.join(', ')}`)
  const strings = (key: string, problem = 'must be an array of strings'): string[] => {
    const value = table[key] ?? []
    if (!Array.isArray(value) || value.some(item => typeof item !== 'string')) throw fault(['packs', key], problem)
    return value as string[]
  }
  const replace = record(table.replace, ['packs', 'replace'])
  for (const [id, name] of Object.entries(replace)) {
    if (typeof name !== 'string') throw fault(['packs', 'replace', id], 'must be the name of a pack')
  }
  const config = record(table.config, ['packs', 'config'])
  for (const [name, options] of Object.entries(config)) record(options, ['packs', 'config', name])
  const section = (key: string) => (table[key] === undefined ? undefined : record(table[key], ['packs', key]))
  return {
    load: strings('load'),
    disable: strings('disable'),
    require: strings('require'),
    replace: replace as Record<string, string>,
    config,
    faults: faultsOf(section('faults'), fault),
    isolate: typeof table.isolate === 'boolean' ? table.isolate : strings('isolate', 'must be true, false or an array of strings'),
    isolation: isolationOf(section('isolation') ?? {}, fault)
  }
}

type Fault = (path: readonly string[], problem: string) => Error

function isolationOf(given: Record<string, unknown>, fault: Fault): IsolationOptions {
  const path = ['packs', 'isolation']
  const odd = Object.keys(given).find(key => !Object.hasOwn(isolationOptions, key))
  if (odd !== undefined) throw fault([...path, odd], `is unknown; [packs.isolation] has ${Object.keys(isolationOptions).join(', ')}`)
  const whole = (key: keyof IsolationOptions): number => {
    const [standard, least] = isolationOptions[key]
    const value = given[key] ?? standard
    if (!Number.isInteger(value) || (value as number) < least) throw fault([...path, key], `must be a whole number of at least ${least}`)
    return value as number
  }
  return { memory_mb: whole('memory_mb'), hang_s: whole('hang_s'), restarts: whole('restarts') }
}

/** `faults = { limit = 20, within_s = 60 }`: both, whole and at least 1. */
function faultsOf(given: Record<string, unknown> | undefined, fault: Fault): Deployment['faults'] {
  if (given === undefined) return undefined
  const odd = Object.keys(given).find(key => key !== 'limit' && key !== 'within_s')
  if (odd !== undefined) throw fault(['packs', 'faults', odd], 'is unknown; [packs.faults] has limit, within_s')
  const whole = (key: string): number => {
    const value = given[key]
    if (!Number.isInteger(value) || (value as number) < 1) throw fault(['packs', 'faults', key], 'must be a whole number of at least 1')
    return value as number
  }
  return { limit: whole('limit'), within_s: whole('within_s') }
}

/** Empty when there is no such file. */
function textOf(file: string): string {
  try {
    return readRegularFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new Error(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
}

/** Without a word of packs in it the config pack copes with a file that is no TOML; with one nothing may start. */
async function parsedToml(file: string, text: string): Promise<Record<string, unknown>> {
  const { parse, TomlError } = await import('smol-toml')
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const reason = error.message.split('\n', 1)[0]
    throw new Error(`${file}:${error.line}:${error.column}: it mentions packs and cannot be parsed: ${reason}`, { cause: error })
  }
}

/**
 * Where a key of a TOML text stands that is known to parse: the place of the key, or of the table or value that it is a part of. Lines
 * of multi-line strings may be taken for keys: good enough for a message.
 */
function placeOf(text: string, path: readonly string[]): { readonly line: number; readonly column: number } {
  let best = { line: 1, column: 1 }
  let depth = 0
  let table: string[] = []
  for (const [index, content] of text.split('\n').entries()) {
    const [, indent = '', header, key] = /^(\s*)(?:\[\[?([^\]]+)\]|([^=#]+?)\s*=)/.exec(content) ?? []
    if (header !== undefined) table = keysOf(header)
    const here = key === undefined ? table : [...table, ...keysOf(key)]
    const differs = path.findIndex((word, at) => word !== here[at])
    const shared = differs < 0 ? path.length : differs
    const related = shared === path.length || shared === here.length
    if (!related || shared <= depth) continue
    best = { line: index + 1, column: indent.length + 1 }
    depth = shared
  }
  return best
}

/** The words of a dotted key, quotes and escapes undone. */
export function keysOf(dotted: string): string[] {
  return (dotted.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^.\s"']+/g) ?? []).map(word => {
    if (word.startsWith("'")) return word.slice(1, -1)
    if (!word.startsWith('"')) return word
    try {
      return String(JSON.parse(word))
    } catch {
      return word.slice(1, -1) // an escape that only TOML knows
    }
  })
}
