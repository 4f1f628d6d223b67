/** Nothing secret leaves the server: secrets are told by the name of their key, at any depth, beside what sections declare. */
import { isSecretName, REDACTED, redactText, redactUrls } from '../../kernel/index.ts'
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
 * The value without secrets: their keys are gone, user names, passwords and keys are taken out of URLs, what looks like a credential out of
 * other texts, and so is the word after `--token` in a list. Booleans are never secret. Parts that hold none are shared, not copied.
 * The result is JSON: dates, integers beyond 2^53, inf and nan become text.
 */
export function redact(value: unknown, { names = false, secrets }: RedactOptions = {}): unknown {
  return strip(value, names, secrets && placesOf(secrets))
}

function strip(value: unknown, names: boolean, places: Places | undefined): unknown {
  if (typeof value === 'string') return redactText(redactUrls(value))
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number' && !Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf'
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) {
    const items = value.map((item, index) =>
      follows(value[index - 1], item) ? REDACTED : strip(item, false, below(places, String(index)))
    )
    return items.every((item, index) => item === value[index]) ? value : items
  }
  return isTable(value) ? stripTable(value, names, places) : value
}

function stripTable(table: Table, names: boolean, places: Places | undefined): Table {
  const keys = Object.keys(table)
  let result: Table | undefined
  for (const [index, key] of keys.entries()) {
    const item = table[key]
    const inner = below(places, key)
    const hidden = inner?.secret || (!names && typeof item !== 'boolean' && isSecretKey(key))
    const clean = hidden ? undefined : strip(item, false, inner)
    if (!result && (hidden || clean !== item)) {
      result = {}
      for (const before of keys.slice(0, index)) put(result, before, table[before])
    }
    if (result && !hidden) put(result, key, clean)
  }
  return result ?? table
}

/** Declared secrets at and below a place. */
interface Places {
  /** The place itself is one. */
  readonly secret: boolean
  readonly named: ReadonlyMap<string, Places>
  /** For keys without a name of their own. */
  readonly any: Places | undefined
}

const known = new WeakMap<readonly string[], Places>()

function placesOf(secrets: readonly string[]): Places {
  let places = known.get(secrets)
  if (!places) {
    places = gather(secrets.map(path => path.split('.')))
    known.set(secrets, places)
  }
  return places
}

function gather(paths: readonly (readonly string[])[]): Places {
  const through = (...heads: string[]) =>
    gather(paths.flatMap(([head, ...rest]) => (head !== undefined && heads.includes(head) ? [rest] : [])))
  const heads = new Set(paths.flatMap(([head]) => (head === undefined ? [] : [head])))
  return {
    secret: paths.some(path => path.length === 0),
    named: new Map([...heads].filter(head => head !== '*').map(head => [head, through(head, '*')])),
    any: heads.has('*') ? through('*') : undefined
  }
}

function below(places: Places | undefined, key: string): Places | undefined {
  return places && (places.named.get(key) ?? places.any)
}

/** `['--api-key', '<key>']`: the arguments of a command. */
function follows(flag: unknown, item: unknown): boolean {
  return typeof item === 'string' && typeof flag === 'string' && /^--?[\w-]+$/.test(flag) && isSecretName(flag)
}
