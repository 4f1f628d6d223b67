/** Where a deployment comes from: flags first, then environment, then `[packs]` in `<home>/config.toml`. */
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { readRegularFile } from '../../kernel/regular-file.ts'
import type { FlagValues } from './options.ts'

export interface Deployment {
  readonly home: string
  readonly load: readonly { readonly spec: string; readonly from: string }[]
  readonly disable: readonly string[]
  readonly require: readonly string[]
  /** Which pack provides a service in place of its default pack: pack names by service id. */
  readonly replace: Readonly<Record<string, string>>
  /** Options by pack name. */
  readonly config: Readonly<Record<string, unknown>>
}

/** `--home`, else SVC_CODE_HOME, else `~/.svc-code`; absolute. Throws when the user has no home directory to put it in. */
export function homeOf(flags: FlagValues, env: NodeJS.ProcessEnv): string {
  const given = flags.home ?? env.SVC_CODE_HOME
  if (given) return resolve(given)
  const user = homedir()
  if (!isAbsolute(user)) throw new Error('HOME is empty or no absolute path: name the home with --home or SVC_CODE_HOME')
  return join(user, '.svc-code')
}

/** Comma-separated environment value as a list. */
export function listOf(value: string | undefined): string[] {
  return (value ?? '')
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== '')
}

/** Reads `[packs]`. Throws when that cannot be done: a file that mentions packs and cannot be parsed, unknown keys and wrong types (the key named). */
export async function readDeployment(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<Deployment> {
  const home = homeOf(flags, env)
  const file = join(home, 'config.toml')
  const table = await packsTable(file)
  return {
    home,
    load: [
      ...strings(table, 'load').map(spec => ({ spec, from: dirname(file) })),
      ...(flags.pack ?? []).map(spec => ({ spec, from: process.cwd() }))
    ],
    disable: [...strings(table, 'disable'), ...(flags.disable ?? [])],
    require: [...strings(table, 'require'), ...(flags.require ?? [])],
    replace: names(table.replace, 'packs.replace'),
    config: record(table.config, 'packs.config')
  }
}

const tableKeys: readonly string[] = ['load', 'disable', 'require', 'replace', 'config']

async function packsTable(file: string): Promise<Record<string, unknown>> {
  let text: string
  try {
    text = readRegularFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new Error(`${file} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  if (!/^\s*\[?\s*["']?packs["']?\s*[.=\]]/m.test(text)) return {}
  const { parse } = await import('smol-toml')
  let parsed: Record<string, unknown>
  try {
    parsed = parse(text)
  } catch (error) {
    // Going on would load what the operator may have disabled. Without [packs] the config pack copes with the file.
    throw new Error(`${file} names packs and cannot be parsed: ${(error as Error).message.split('\n', 1)[0]}`, { cause: error })
  }
  const table = record(parsed.packs, 'packs')
  const odd = Object.keys(table).find(key => !tableKeys.includes(key))
  if (odd !== undefined) throw new Error(`packs.${odd} in config.toml is unknown; [packs] has ${tableKeys.join(', ')}`)
  return table
}

function record(value: unknown, key: string): Record<string, unknown> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${key} in config.toml must be a table`)
  return { ...value }
}

function names(value: unknown, key: string): Record<string, string> {
  const table = record(value, key)
  const odd = Object.keys(table).find(id => typeof table[id] !== 'string')
  if (odd !== undefined) throw new Error(`${key}.${odd} in config.toml must be the name of a pack`)
  return table as Record<string, string>
}

function strings(table: Readonly<Record<string, unknown>>, key: string): string[] {
  const value = table[key]
  if (value === undefined) return []
  if (!Array.isArray(value) || value.some(item => typeof item !== 'string'))
    throw new Error(`packs.${key} in config.toml must be an array of strings`)
  return value as string[]
}
