/** Where a deployment comes from: flags first, then environment, then `[packs]` in `<home>/config.toml`. */
import { join, resolve } from 'node:path'
import { readRegularFile } from '../../kernel/home.ts'
import { checker, knownHome, type Static, type TSchema, Type } from '../../kernel/index.ts'
import type { FlagValues } from './flags.ts'
import { type Isolation, isolationDefaults } from './isolation/options.ts'
import type { Origin } from './pack-files.ts'

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

/**
 * `--home`, else SVC_CODE_HOME, else `~/.svc-code`; absolute. A `~/` that no shell has replaced (`--home=~/x`, a file of variables) is the user's.
 * Throws when it is needed and the user has no home directory.
 */
export function homeOf(flags: FlagValues, env: NodeJS.ProcessEnv): string {
  const given = flags.home || env.SVC_CODE_HOME || '~/.svc-code'
  if (given !== '~' && !given.startsWith('~/')) return resolve(given)
  const user = knownHome()
  if (user === undefined) throw new Error('HOME is empty, not set or no absolute path: name the home with --home or SVC_CODE_HOME')
  return join(user, given.slice(2))
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
  const { load = [], disable = [], require = [], replace = {}, config = {}, faults, isolate = [], isolation } = await packsTable(file)
  return {
    home,
    load: [...load.map(spec => ({ spec, from: home })), ...(flags.pack ?? []).map(spec => ({ spec, from: process.cwd(), first: true }))],
    demo: flags.demo ?? false,
    disable: [...disable, ...(flags.disable ?? [])],
    require: [...require, ...(flags.require ?? [])],
    replace,
    config,
    faults,
    isolate,
    isolation: { ...isolationDefaults, ...isolation }
  }
}

const table = { additionalProperties: false, must: 'be a table' }
const names = Type.Array(Type.String(), { must: 'be an array of strings' })
const tableOf = <S extends TSchema>(value: S) => Type.Record(Type.String(), value, { must: 'be a table' })
const whole = (minimum: number) => Type.Integer({ minimum, must: `be a whole number of at least ${minimum}` })

/** `must`: what is said of a value that does not fit. */
const PacksTable = Type.Partial(
  Type.Object({
    load: names,
    disable: names,
    require: names,
    replace: tableOf(Type.String({ must: 'be the name of a pack' })),
    config: tableOf(tableOf(Type.Unknown())),
    faults: Type.Object({ limit: whole(1), within_s: whole(1) }, table),
    isolate: Type.Union([Type.Boolean(), names], { must: 'be true, false or an array of strings' }),
    isolation: Type.Partial(Type.Object({ memory_mb: whole(128), hang_s: whole(1), restarts: whole(0) }), table)
  }),
  table
)

async function packsTable(file: string): Promise<Static<typeof PacksTable>> {
  const text = textOf(file)
  const { packs = {} } = /packs|\\u/i.test(text) ? await parsedToml(file, text) : {} // a key may be spelled with escapes
  const errors = [...checker(PacksTable).Errors(packs)]
  const unknown = errors.find(({ message }) => message === 'Unexpected property')
  const error = unknown ?? errors[0]
  if (!error) return packs as Static<typeof PacksTable>
  const keys = error.path.split('/').slice(1)
  const path = ['packs', ...keys.map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))]
  const { must, properties } = error.schema
  const known = `is unknown; [${path.slice(0, -1).join('.')}] has ${Object.keys(properties ?? {}).join(', ')}`
  // An item of a list has no place of its own.
  const [at, problem] = unknown ? [path, known] : must ? [path, `must ${must}`] : [path.slice(0, -1), `must ${names.must}`]
  const { line, column } = keyPlace(text, at)
  throw new Error(`${file}:${line}:${column}: ${at.join('.')} ${problem}`)
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
function keyPlace(text: string, path: readonly string[]): { readonly line: number; readonly column: number } {
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
