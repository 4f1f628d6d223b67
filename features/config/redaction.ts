/** Nothing secret leaves the server: secrets are told by the name of their key, at any depth, beside what sections declare. */
import { isSecretName, redactText, redactUrls } from '../../kernel/index.ts'
import { isTable, put, remembered, type Table } from './tables.ts'

/** Tables that hold credentials under names of any kind. */
const holders = new Set(['oauth', 'headers', 'customheaders', 'env'])

/** `api_key`, `apiKey`, `custom-headers`, `SEARCH_TOKEN`; not `has_api_key` or `max_tokens`. */
export const isSecretKey = remembered(key => isSecretName(key) || holders.has(key.toLowerCase().replace(/[^a-z0-9]/g, '')))

export interface RedactOptions {
  /** The keys at the top are names that users chose, so they say nothing: a provider may be called `token`. */
  readonly names?: boolean
  /** Declared secrets: dotted paths, `*` for any key or element. */
  readonly secrets?: readonly string[] | undefined
}

/**
 * A copy without secrets: their keys are gone, user names, passwords and keys are taken out of URLs, what looks like a credential out of
 * other texts, and so is the word after `--token` in a list. Booleans are never secret.
 * The copy is JSON: dates, integers beyond 2^53, inf and nan become text.
 */
export function redact(value: unknown, { names = false, secrets = [] }: RedactOptions = {}): unknown {
  return strip(
    value,
    names,
    secrets.map(path => path.split('.'))
  )
}

function strip(value: unknown, names: boolean, secrets: readonly (readonly string[])[]): unknown {
  if (typeof value === 'string') return redactText(redactUrls(value))
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number' && !Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf'
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) {
    return value.map((item, index) => (follows(value[index - 1], item) ? '[redacted]' : strip(item, false, below(secrets, String(index)))))
  }
  if (!isTable(value)) return value
  const result: Table = {}
  for (const [key, item] of Object.entries(value)) {
    if (!names && typeof item !== 'boolean' && isSecretKey(key)) continue
    const inner = below(secrets, key)
    if (inner.some(path => path.length === 0)) continue
    put(result, key, strip(item, false, inner))
  }
  return result
}

const none: readonly (readonly string[])[] = []

/** What is left of the paths that lead through `key`. */
function below(paths: readonly (readonly string[])[], key: string): readonly (readonly string[])[] {
  if (paths.length === 0) return none
  return paths.filter(([head]) => head === '*' || head === key).map(([, ...rest]) => rest)
}

/** `['--api-key', '<key>']`: the arguments of a command. */
function follows(flag: unknown, item: unknown): boolean {
  return typeof item === 'string' && typeof flag === 'string' && /^--?[\w-]+$/.test(flag) && isSecretName(flag)
}
