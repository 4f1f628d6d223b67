/** `POST /api/v1/config`: the body's domains in file form, merged into the file by the contract's rules. */
import { invalid } from '../../kernel/index.ts'
import { both, convertKeys, toSnake } from './casing.ts'
import { redact } from './redaction.ts'
import { isMap, rowsLike } from './rows.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { copy, isTable, own, put, same, type Table } from './tables.ts'
import { domainToWire } from './wire.ts'

/** A body reduced to what it may change: known domains, file spelling, without `raw`, nulls and the derived `yolo`. */
export interface BodyPatch {
  readonly domains: Table
  /** Top-level keys to announce: those of the body, and what the shorthand sets. */
  readonly fields: readonly string[]
}

export function readBody(body: Table, settings: Settings): BodyPatch {
  const domains: Table = {}
  const fields = new Set<string>()
  let yolo = false
  for (const [key, value] of Object.entries(body)) {
    const given = toSnake(key)
    const section = settings.section(given) ?? settings.sections().find(({ alias }) => alias === given)
    const name = section?.name ?? given
    if (value === null || value === undefined || name === 'raw') continue
    if (name === 'yolo') {
      if (typeof value !== 'boolean') throw invalid([{ path: `body.${key}`, message: 'expected boolean' }])
      yolo = value
      if (yolo) fields.add('yolo')
    } else if (section) {
      put(domains, name, both(own(domains, name), convertKeys(name, value, 'snake', section.schema)))
      fields.add(name)
    }
  }
  if (yolo && !Object.hasOwn(domains, 'default_permission_mode')) {
    domains.default_permission_mode = 'yolo'
    fields.add('default_permission_mode')
  }
  return { domains, fields: [...fields] }
}

/** Merges the domains into `file` (in place). What merely repeats what GET shows of a secret, the environment or a derived field changes nothing. */
export function applyBody(file: Table, { domains }: BodyPatch, settings: Settings, env: NodeJS.ProcessEnv): void {
  for (const [name, change] of Object.entries(domains)) {
    const section = settings.section(name) as ConfigSection
    const stored = own(file, name)
    const shown = section.toWire ? domainToWire(section, concerned(section, settings.get(section), change)) : undefined
    const given = section.toWire ? withoutEchoes(change, stored, shown) : change
    put(file, name, withoutOverlay(merged(stored, given), stored, section.overlay?.(env)))
    if (own(file, name) === undefined) delete file[name]
    const alias = section.alias === undefined ? undefined : own(file, section.alias)
    if (isTable(alias) && isTable(given)) repeat(alias, given, own(file, name))
  }
}

/** Of a map only the rows that a change names. */
function concerned(section: ConfigSection, value: unknown, change: unknown): unknown {
  return isMap(section) && isTable(value) && isTable(change) ? rowsLike(value, change) : value
}

/** What a table of the other name says as well would win: it gets the new values, too. */
function repeat(alias: Table, given: Table, next: unknown): void {
  if (!isTable(next)) return
  for (const key of Object.keys(given)) if (Object.hasOwn(alias, key)) put(alias, key, copy(own(next, key)))
}

/** Tables merge, null keeps, the rest replaces; a value that equals the redacted form of the stored one keeps the stored one. */
function merged(stored: unknown, given: unknown): unknown {
  if (given === null || given === undefined) return stored
  if (stored !== undefined && !isTable(given) && same(redact(stored), given)) return stored
  if (Array.isArray(given) && Array.isArray(stored)) return restored(stored, given)
  if (!isTable(given)) return copy(given)
  const result = isTable(stored) ? { ...stored } : {}
  for (const [key, item] of Object.entries(given)) {
    if (key === 'has_api_key') continue // derived, only ever read
    const value = merged(own(result, key), item)
    if (value !== undefined) put(result, key, value)
  }
  return result
}

/** A list that was edited as GET shows it: each item that reads like a stored one is that one, with what GET left out. */
function restored(stored: readonly unknown[], given: readonly unknown[]): unknown[] {
  const shown = redact(stored) as unknown[]
  const hidden = stored.map((item, index) => ({ item, shown: shown[index] })).filter(({ item, shown }) => !same(item, shown))
  return given.map(item => {
    const at = hidden.findIndex(({ shown }) => same(shown, item))
    return copy(at < 0 ? item : hidden.splice(at, 1)[0]?.item)
  })
}

/** A derived wire form sent back: fields that the file does not have and that read as GET shows them are left out. */
function withoutEchoes(given: unknown, stored: unknown, shown: unknown): unknown {
  if (!isTable(given)) return stored === undefined && same(given, shown) ? undefined : given
  const result: Table = {}
  for (const [key, item] of Object.entries(given)) {
    const left = withoutEchoes(item, isTable(stored) ? own(stored, key) : undefined, isTable(shown) ? own(shown, key) : undefined)
    if (left !== undefined) put(result, key, left)
  }
  // A record that consists of echoes only comes from the environment: it must not appear in the file as an empty one.
  return Object.keys(result).length === 0 && Object.keys(given).length > 0 && stored === undefined ? undefined : result
}

/** Values of the environment never reach the file: where the result says the same, the file keeps what it had. */
function withoutOverlay(next: unknown, stored: unknown, environment: unknown): unknown {
  if (environment === undefined) return next
  if (!isTable(environment)) return same(next, environment) ? stored : next
  if (!isTable(next)) return next
  const result: Table = {}
  for (const [key, item] of Object.entries(next)) {
    const kept = withoutOverlay(item, isTable(stored) ? own(stored, key) : undefined, own(environment, key))
    if (kept !== undefined) put(result, key, kept)
  }
  return Object.keys(result).length === 0 && stored === undefined && Object.keys(next).length > 0 ? undefined : result
}
