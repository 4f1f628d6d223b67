/** Nothing secret leaves the server: secrets are told by the name of their key, at any depth, beside what sections declare. */
import { isSecretName, REDACTED, redactText } from '../../kernel/index.ts'
import { isTable, put, remembered, type Table } from './tables.ts'
import { redactUrls } from './urls.ts'

/** Tables that hold credentials under names of any kind. */
const holders = new Set(['oauth', 'headers', 'customheaders', 'env'])

/** `api_key`, `apiKey`, `custom-headers`, `SEARCH_TOKEN`; not `has_api_key` or `max_tokens`. */
export const isSecretKey = remembered(key => isSecretName(key) || holders.has(key.toLowerCase().replace(/[^a-z0-9]/g, '')))

interface RedactOptions {
  /** The keys at the top are names that users chose, so they say nothing: a provider may be called `token`. */
  readonly names?: boolean
  /** Declared secrets: dotted paths, `*` for any key or element. */
  readonly secrets?: readonly string[] | undefined
}

/**
 * The value without secrets: their keys are gone, user names, passwords and keys are taken out of URLs, what looks like a credential out of
 * other texts, and so is the word after `--token` in a list. Booleans are never secret.
 * The result is JSON: dates, integers beyond 2^53, inf and nan become text.
 */
export function redact(value: unknown, { names = false, secrets = [] }: RedactOptions = {}): unknown {
  return strip(value, names, splitPaths(secrets))
}

/** Declared secrets at and below a place: the parts of their paths from there on. */
export type SecretPaths = readonly (readonly string[])[]

export function splitPaths(secrets: readonly string[]): SecretPaths {
  return secrets.map(path => path.split('.'))
}

/** What is left of the paths that lead through a key. An empty rest means the key itself. */
export function pathsBelow(paths: SecretPaths, key: string): SecretPaths {
  return paths.length === 0 ? paths : paths.filter(([head]) => head === '*' || head === key).map(([, ...rest]) => rest)
}

function strip(value: unknown, names: boolean, paths: SecretPaths): unknown {
  if (typeof value === 'string') return redactText(redactUrls(value))
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number' && !Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf'
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) {
    return value.map((item, index) => (follows(value[index - 1], item) ? REDACTED : strip(item, false, pathsBelow(paths, String(index)))))
  }
  return isTable(value) ? stripTable(value, names, paths) : value
}

function stripTable(table: Table, names: boolean, paths: SecretPaths): Table {
  const result: Table = {}
  for (const [key, item] of Object.entries(table)) {
    if (!names && typeof item !== 'boolean' && isSecretKey(key)) continue
    const inner = pathsBelow(paths, key)
    if (!inner.some(({ length }) => length === 0)) put(result, key, strip(item, false, inner))
  }
  return result
}

/** `['--api-key', '<key>']`: the arguments of a command. */
function follows(flag: unknown, item: unknown): boolean {
  return typeof item === 'string' && typeof flag === 'string' && /^--?[\w-]+$/.test(flag) && isSecretName(flag)
}
