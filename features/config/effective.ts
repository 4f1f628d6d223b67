/** Effective value of a domain: default < file < environment, with a way back when one of them is not valid. */
import { type Detail, problems, REDACTED, type TSchema } from '../../kernel/index.ts'
import { mapValue } from './casing.ts'
import { badRows, changedRows, isMap } from './rows.ts'
import type { ConfigDiagnostic, ConfigSection } from './service.ts'
import { freeze, isTable, overlay, own, same, type Table } from './tables.ts'

/** A domain as it counts. */
export interface Effective {
  readonly value: unknown
  readonly diagnostics: readonly ConfigDiagnostic[]
  /** What it was made of. */
  readonly sources: Sources
}

interface Sources {
  /** Values of the file under the names of the domain. */
  readonly stored: readonly unknown[]
  readonly environment: unknown
  readonly reports: readonly string[]
}

type Report = (message: string) => void

/** At most so many broken entries of one domain are told one by one. */
const MAX_REPORTS = 20

/** The value of a section over a file; invalid parts fall back and are reported without their values. */
export function effective(section: ConfigSection, file: Table, env: NodeJS.ProcessEnv): Effective {
  const diagnostics: ConfigDiagnostic[] = []
  const report = (message: string) => diagnostics.push({ domain: section.name, message })
  const sources = sourcesOf(section, file, env)
  const { environment } = sources
  const stored = storedOf(sources)
  let value = stored === undefined ? section.default : fromFile(section, stored, report)
  sources.reports.forEach(report)
  // One by one: a value that does not fit must not take the others with it.
  for (const part of isTable(environment) ? Object.entries(environment).map(([key, item]) => ({ [key]: item })) : [environment]) {
    if (part === undefined) continue
    const merged = overlay(value, part)
    const [first] = problems(section.schema, merged)
    if (first) report(`environment: ${pathOf(section.name, first.path)}: ${first.message}; the environment is ignored here`)
    else value = merged
  }
  return { value: freeze(overlay(undefined, value)), diagnostics, sources }
}

/** Would `effective` answer the same? Parts of a file that did not change are the same objects. */
export function isCurrent({ sources }: Effective, section: ConfigSection, file: Table, env: NodeJS.ProcessEnv): boolean {
  const { stored, environment, reports } = sourcesOf(section, file, env)
  const unchanged = stored.every((value, index) => value === sources.stored[index])
  return unchanged && same(environment, sources.environment) && same(reports, sources.reports)
}

function sourcesOf(section: ConfigSection, file: Table, env: NodeJS.ProcessEnv): Sources {
  const { name, alias } = section
  const reports: string[] = []
  const environment = section.overlay?.(env, (variable, problem) => reports.push(`${variable} ${problem}`))
  return { stored: [own(file, name), alias === undefined ? undefined : own(file, alias)], environment, reports }
}

/** What the file says of a domain, under both of its names. */
function storedOf({ stored: [stored, over] }: Sources): unknown {
  return over === undefined ? stored : overlay(stored, over)
}

function fromFile(section: ConfigSection, stored: unknown, report: Report): unknown {
  const merged = withDefault(section, stored)
  const wrong = wrongParts(section.schema, merged)
  const value = wrong.length === 0 ? merged : salvage(section, merged)
  const instead = value === section.default ? 'the default is used instead' : 'only what is valid is used'
  for (const { path, message } of wrong.slice(0, MAX_REPORTS)) {
    report(`config.toml: ${pathOf(section.name, path)}: ${message}; ${instead}`)
  }
  for (const { path, message } of remarksOf(section, value)) report(`config.toml: ${pathOf(section.name, path)}: ${message}`)
  for (const [key, replacement] of Object.entries(section.retired ?? {})) {
    if (isTable(stored) && Object.hasOwn(stored, key)) report(`config.toml: ${section.name}.${key} is no longer read; use ${replacement}`)
  }
  return value
}

/** The last map that a section's review had nothing to say about. */
const quiet = new WeakMap<ConfigSection, Table>()

function remarksOf(section: ConfigSection, value: unknown): readonly Detail[] {
  if (!section.review) return []
  if (!isMap(section) || !isTable(value)) return section.review(value)
  const before = quiet.get(section)
  if (value === before) return []
  if (section.review(changedRows(before, value)).length > 0) return section.review(value)
  if (Object.isFrozen(value)) quiet.set(section, value)
  return []
}

/** The first problem of every entry of a map or list; of anything else the first one. Names in maps may be any text. */
function wrongParts(schema: TSchema, value: unknown): Detail[] {
  const rows = mapValue(schema)
  if (rows && isTable(value)) return badRows(rows, value).flatMap(key => problems(rows, value[key], key).slice(0, 1))
  const entries = entriesOf(schema, value)
  if (!entries) return problems(schema, value).slice(0, 1)
  return entries.flatMap(([key, item, inner]) => problems(inner, item, key).slice(0, 1))
}

/** What can be used of a value, which may be all of it. */
export function salvaged(section: ConfigSection, value: unknown): unknown {
  if (wrongParts(section.schema, value).length === 0) return value
  return salvage(section, value)
}

function salvage(section: ConfigSection, value: unknown): unknown {
  return section.salvage ? section.salvage(value) : validEntries(section, value)
}

/** One mistyped provider must not take the others with it. What has no entries is the default as a whole. */
function validEntries({ schema, default: instead }: ConfigSection, value: unknown): unknown {
  const entries = entriesOf(schema, value)?.filter(([, item, inner]) => problems(inner, item).length === 0)
  if (!entries) return instead
  return Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries)
}

/** Key, value and its schema, for maps and lists. */
function entriesOf(schema: TSchema, value: unknown): (readonly [key: string, item: unknown, inner: TSchema])[] | undefined {
  const inner = isTable(value) ? mapValue(schema) : Array.isArray(value) ? (schema.items as TSchema | undefined) : undefined
  return inner && Object.entries(value as object).map(([key, item]) => [key, item, inner] as const)
}

/** What a change would make wrong, with paths below the section. Broken entries of a map that it leaves as they are stand in nobody's way. */
export function newProblems(section: ConfigSection, before: unknown, after: unknown): Detail[] {
  const inner = isTable(after) ? mapValue(section.schema) : undefined
  if (!inner) return problems(section.schema, withDefault(section, after))
  return Object.entries(changedRows(before, after as Table)).flatMap(([key, item]) => problems(inner, item, key))
}

/** A file value completed with the section's default. */
export function withDefault(section: ConfigSection, stored: unknown): unknown {
  return overlay(section.default, stored)
}

/** A header or variable has a name of words; anything else in its place may be a key that was put there by mistake. */
const wordsOnly = /^[A-Za-z][A-Za-z0-9]{0,19}(?:[-_][A-Za-z0-9]{1,19})*(?:\.\d+)?$/

/** Joined with dots, for whoever has to find the value. */
export function pathOf(...parts: readonly string[]): string {
  return parts
    .filter(part => part !== '')
    .join('.')
    .replace(/((?:^|\.)(?:custom_headers|headers|env)\.)(.+)$/s, (whole, table: string, name: string) =>
      wordsOnly.test(name) ? whole : `${table}${REDACTED}`
    )
}
