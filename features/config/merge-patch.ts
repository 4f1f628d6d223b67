/** `POST /api/v1/config`: the body's domains in file form, merged into the file by the contract's rules. */
import { type Detail, REDACTED } from '../../kernel/index.ts'
import { pathOf } from './effective.ts'
import { asSent, both, convertKeys, toSnake } from './key-case.ts'
import { redact } from './redaction.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { copy, isTable, own, put, same, type Table } from './tables.ts'
import { didYouMean, maxStrangers, meant } from './unknown-keys.ts'
import { restoreUrls } from './urls.ts'

/** A body reduced to what it may change: known domains, file spelling, without `raw`, nulls and the derived `yolo`. */
interface BodyPatch {
  readonly domains: Table
  /** Top-level keys to announce: those of the body, and what the shorthand sets. */
  readonly fields: readonly string[]
  /** What is wrong with the shorthand; domains are checked when they are merged. */
  readonly faults: readonly Detail[]
}

export function readBody(body: Table, settings: Settings): BodyPatch {
  const domains: Table = {}
  const fields = new Set<string>()
  const faults: Detail[] = []
  const words = [...settings.names(), 'yolo']
  let strangers = 0
  let yolo = false
  for (const [key, value] of Object.entries(body)) {
    const given = toSnake(key)
    const section = settings.section(given) ?? settings.sections().find(({ alias }) => alias === given)
    const name = section?.name ?? given
    if (value === null || value === undefined || name === 'raw') continue
    if (name === 'yolo') {
      yolo = value === true
      if (yolo) fields.add('yolo')
      if (typeof value !== 'boolean') faults.push({ path: 'yolo', message: 'expected boolean' })
    } else if (section) {
      put(domains, name, both(own(domains, name), convertKeys(name, value, 'snake', section.schema)))
      fields.add(name)
    } else if (strangers++ < maxStrangers) {
      const word = meant(key, words)
      if (word !== undefined) faults.push({ path: key, message: didYouMean(word) })
    }
  }
  if (yolo && !Object.hasOwn(domains, 'default_permission_mode')) {
    domains.default_permission_mode = 'yolo'
    fields.add('default_permission_mode')
  }
  return { domains, fields: [...fields], faults }
}

/**
 * The file with the domains merged in. `config`: what GET shows of that file. What says no more than GET shows, or the environment,
 * or the file itself without its secrets, changes nothing: neither defaults nor values of the environment get into the file, and what
 * redaction hides stays in it.
 */
export function applyBody(file: Table, { domains }: BodyPatch, settings: Settings, config: Table, env: NodeJS.ProcessEnv): Table {
  const next = { ...file }
  for (const [name, change] of Object.entries(domains)) {
    const section = settings.section(name) as ConfigSection
    const shown = convertKeys(name, concerned(own(config, name), change), 'snake', section.schema)
    const given = withoutRepeats(change, [shown, section.overlay?.(env), own(config.raw as Table, name)])
    if (given === undefined) continue
    const value = merged(own(file, name), given)
    put(next, name, value)
    const alias = section.alias === undefined ? undefined : own(file, section.alias)
    if (isTable(alias) && isTable(given)) put(next, section.alias!, repeated(alias, given, value))
  }
  return next
}

/**
 * Texts with the place of a secret in them that the file does not have so: somebody saw them like that and changed them, and the secret would
 * be lost.
 */
export function lostSecrets(before: unknown, next: unknown, path = ''): Detail[] {
  if (Object.is(before, next)) return []
  if (isTable(next)) {
    return Object.entries(next).flatMap(([key, item]) =>
      lostSecrets(isTable(before) ? own(before, key) : undefined, item, pathOf(path, key))
    )
  }
  const found = [...texts(next, path)].filter(([, text]) => text.includes(REDACTED))
  if (found.length === 0) return []
  const known = new Set([...texts(before, '')].map(([, text]) => text))
  return found
    .filter(([, text]) => !known.has(text))
    .map(([place]) => ({ path: pathOf(place), message: `has ${REDACTED} in the place of a secret; write the secret itself` }))
}

function* texts(value: unknown, path: string): Generator<readonly [path: string, text: string], void, void> {
  if (typeof value === 'string') yield [path, value]
  else if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* texts(item, `${path}.${index}`)
  else if (isTable(value)) for (const [key, item] of Object.entries(value)) yield* texts(item, `${path}.${key}`)
}

/** A message that names what a value may be. */
const allowed = /^expected (?:boolean|integer|number|string|object|array|"[^"]*"(?:(?:, | or )"[^"]*")*)$/

/** What is wrong in the terms of the sender: as the body spells it, and with null, which keeps what is there, except inside lists. */
export function toSender(body: unknown, { path, message }: Detail): Detail {
  if (path === '') return { path, message }
  const sent = asSent(body, path)
  const orNull = !sent.inList && allowed.test(message)
  return { path: `body.${sent.path}`, message: orNull ? `${message.replace(/ or (?="[^"]*"$)/, ', ')} or null` : message }
}

/** The part of a domain that a change speaks of. */
function concerned(shown: unknown, change: unknown): unknown {
  if (!isTable(shown) || !isTable(change)) return shown
  return Object.fromEntries(Object.entries(shown).filter(([key]) => Object.hasOwn(change, key) || Object.hasOwn(change, toSnake(key))))
}

/** What a change says that none of `known` says in the same place. Undefined: nothing. */
function withoutRepeats(given: unknown, known: readonly unknown[]): unknown {
  if (given === null || given === undefined || known.some(value => same(value, given))) return undefined
  if (!isTable(given)) return given
  const result: Table = {}
  for (const [key, item] of Object.entries(given)) {
    if (key === 'has_api_key') continue // derived, only ever read
    const left = withoutRepeats(
      item,
      known.map(value => (isTable(value) ? own(value, key) : undefined))
    )
    if (left !== undefined) put(result, key, left)
  }
  return Object.keys(result).length > 0 || Object.keys(given).length === 0 ? result : undefined
}

/** What a table of the other name says as well would win: it gets the new values, too. */
function repeated(alias: Table, given: Table, next: unknown): Table {
  const result = { ...alias }
  if (isTable(next)) for (const key of Object.keys(given)) if (Object.hasOwn(alias, key)) put(result, key, own(next, key))
  return result
}

/** Tables merge, null keeps, the rest replaces. */
function merged(stored: unknown, given: unknown): unknown {
  if (given === null || given === undefined) return stored
  if (Array.isArray(given) && Array.isArray(stored)) return restored(stored, given)
  if (!isTable(given)) return restoredText(stored, given) ?? copy(given)
  const result = isTable(stored) ? { ...stored } : {}
  for (const [key, item] of Object.entries(given)) {
    const value = merged(own(result, key), item)
    if (value !== undefined) put(result, key, value)
  }
  return result
}

/**
 * A list that was edited as GET shows it: each item that reads like a stored one is that one, with what GET left out; of the others each that
 * has a text of a stored one as GET shows it has that text in full.
 */
function restored(stored: readonly unknown[], given: readonly unknown[]): unknown[] {
  const shown = redact(stored) as unknown[]
  const hidden = stored.map((item, index) => ({ item, shown: shown[index] })).filter(({ item, shown }) => !same(item, shown))
  const take = (fits: (one: Hidden) => boolean) => {
    const at = hidden.findIndex(fits)
    return at < 0 ? undefined : hidden.splice(at, 1)[0]
  }
  const whole = given.map(item => take(one => same(one.shown, item)))
  return given.map((item, index) => {
    if (whole[index]) return copy(whole[index].item)
    if (typeof item === 'string') {
      const like = take(one => restoredText(one.item, item) !== undefined)
      return like ? restoredText(like.item, item) : item
    }
    const like = isTable(item) && take(one => hiddenIn(one, item).length > 0)
    return like ? { ...copy(item), ...Object.fromEntries(hiddenIn(like, item)) } : copy(item)
  })
}

/** A text with what GET hid of the URLs of a stored one, which somebody changed elsewhere; undefined where that is nothing. */
function restoredText(stored: unknown, given: unknown): string | undefined {
  if (typeof stored !== 'string' || typeof given !== 'string') return undefined
  const restored = restoreUrls(stored, given)
  return restored === given ? undefined : restored
}

/** An item of a list, and how GET shows it. */
interface Hidden {
  readonly item: unknown
  readonly shown: unknown
}

/** Fields that a table has as they are shown of a stored one, with what they are in full. */
function hiddenIn({ item, shown }: Hidden, given: Table): [key: string, value: unknown][] {
  if (!isTable(item) || !isTable(shown)) return []
  return Object.entries(given).flatMap(([key, value]) => {
    const full = own(item, key)
    if (same(own(shown, key), value)) return same(full, value) ? [] : [[key, copy(full)]]
    const text = restoredText(full, value)
    return text === undefined ? [] : [[key, text]]
  })
}
