/** Nothing secret leaves the server: secrets are told by the name of their key, at any depth, beside what sections declare. */
import { isTable, put, type Table } from './tables.ts'

const wholeNames = new Set(['oauth', 'headers', 'customheaders', 'env', 'tokens', 'cookie', 'cookies'])
const endings = /(apikey|accesskey|privatekey|secret|secretkey|password|passwd|passphrase|token|credentials?|authorization)$/

/** `api_key`, `apiKey`, `custom-headers`, `SEARCH_TOKEN`; not `has_api_key` or `max_tokens`. */
export function isSecretKey(key: string): boolean {
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, '')
  return !name.startsWith('has') && (wholeNames.has(name) || endings.test(name))
}

/** A copy without secrets: their keys are gone, user names and passwords are taken out of URLs. Booleans are never secret. */
export function redact(value: unknown): unknown {
  return strip(value, false)
}

function strip(value: unknown, names: boolean): unknown {
  if (typeof value === 'string') return redactUrl(value)
  if (Array.isArray(value)) return value.map(item => strip(item, false))
  if (!isTable(value)) return value
  const result: Table = {}
  for (const [key, item] of Object.entries(value)) {
    if (!names && typeof item !== 'boolean' && isSecretKey(key)) continue
    put(result, key, strip(item, false))
  }
  return result
}

/** As `redact`, for tables whose own keys are names that users chose: a provider may be called `token`. */
export function redactNamed(value: unknown): unknown {
  return strip(value, true)
}

const userInfo = /^([a-z][a-z0-9+.-]*:\/\/)[^/?#\s]*@/i
const secretQuery = /([?&](?:api[_-]?key|key|(?:access[_-]?|auth[_-]?)?token|secret|password|signature|sig)=)[^&#\s]+/gi

function redactUrl(text: string): string {
  return text.includes('://') ? text.replace(userInfo, '$1').replace(secretQuery, '$1') : text
}

/** Removes declared secrets (`*.api_key`) from a value in place. */
export function removePaths(value: unknown, paths: readonly string[] = []): void {
  for (const path of paths) removePath(value, path.split('.'))
}

function removePath(value: unknown, [head, ...rest]: readonly string[]): void {
  if (head === undefined) return
  if (Array.isArray(value)) {
    if (head === '*') for (const item of value) removePath(item, rest)
  } else if (isTable(value)) {
    for (const key of head === '*' ? Object.keys(value) : [head]) {
      if (!Object.hasOwn(value, key)) continue
      if (rest.length === 0) delete value[key]
      else removePath(value[key], rest)
    }
  }
}
