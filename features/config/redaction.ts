/** Nothing secret leaves the server: secrets are told by the name of their key, at any depth, beside what sections declare. */
import { isTable, put, remembered, type Table } from './tables.ts'

const wholeNames = new Set(['oauth', 'headers', 'customheaders', 'env', 'tokens', 'cookie', 'cookies'])
const endings = /(apikey|accesskey|privatekey|secret|secretkey|password|passwd|passphrase|token|credentials?|authorization)$/

/** `api_key`, `apiKey`, `custom-headers`, `SEARCH_TOKEN`; not `has_api_key` or `max_tokens`. */
export const isSecretKey = remembered(key => {
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, '')
  return !name.startsWith('has') && (wholeNames.has(name) || endings.test(name))
})

export interface RedactOptions {
  /** The keys at the top are names that users chose, so they say nothing: a provider may be called `token`. */
  readonly names?: boolean
  /** Declared secrets: dotted paths, `*` for any key or element. */
  readonly secrets?: readonly string[] | undefined
}

/**
 * A copy without secrets: their keys are gone, user names, passwords and keys are taken out of URLs. Booleans are never secret.
 * The copy is JSON: dates and integers beyond 2^53 become text.
 */
export function redact(value: unknown, { names = false, secrets = [] }: RedactOptions = {}): unknown {
  return strip(
    value,
    names,
    secrets.map(path => path.split('.'))
  )
}

function strip(value: unknown, names: boolean, secrets: readonly (readonly string[])[]): unknown {
  if (typeof value === 'string') return redactUrl(value)
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map((item, index) => strip(item, false, below(secrets, String(index))))
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

const userInfo = /^([a-z][a-z0-9+.-]*:\/\/)[^/?#\s]*@/i
const secretQuery = /([?&](?:api[_-]?key|key|(?:access[_-]?|auth[_-]?)?token|secret|password|signature|sig)=)[^&#\s]+/gi

function redactUrl(text: string): string {
  return text.includes('://') ? text.replace(userInfo, '$1').replace(secretQuery, '$1') : text
}
