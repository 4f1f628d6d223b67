/** Effective value of a domain: default < file < environment, with a way back when one of them is not valid. */
import { type Detail, problems, REDACTED, type TSchema } from '../../kernel/index.ts'
import { isMap, mapValue } from './key-case.ts'
import { RecordMemo } from './record-memo.ts'
import type { ConfigDiagnostic, ConfigRemark, ConfigSection } from './service.ts'
import { freeze, isTable, overlay, own, type Table } from './tables.ts'
import { misspelt } from './unknown-keys.ts'

/** A domain as it counts. */
export interface Effective {
  readonly value: unknown
  readonly diagnostics: readonly ConfigDiagnostic[]
}

type Report = (message: string) => void

/** At most so many broken entries of one domain are told one by one. */
const MAX_REPORTS = 20

/** The value of a section over a file; invalid parts fall back and are reported without their values. */
export function effective(section: ConfigSection, file: Table, env: NodeJS.ProcessEnv): Effective {
  const diagnostics: ConfigDiagnostic[] = []
  const report = (message: string) => diagnostics.push({ domain: section.name, message })
  const over = section.alias === undefined ? undefined : own(file, section.alias)
  const given = over === undefined ? own(file, section.name) : overlay(own(file, section.name), over)
  let value = given === undefined ? section.default : fromFile(section, given, report)
  const environment: unknown = section.overlay?.(env, (variable, problem) => report(`${variable} ${problem}`))
  // One by one: a value that does not fit must not take the others with it.
  for (const part of isTable(environment) ? Object.entries(environment).map(([key, item]) => ({ [key]: item })) : [environment]) {
    if (part === undefined) continue
    const merged = overlay(value, part)
    const [first] = wrongParts(section.schema, merged)
    if (first) report(`environment: ${pathOf(section.name, first.path)}: ${first.message}; the environment is ignored here`)
    else value = merged
  }
  return { value: freeze(overlay(undefined, value)), diagnostics }
}

function fromFile(section: ConfigSection, stored: unknown, report: Report): unknown {
  const merged = withDefault(section, stored)
  const wrong = wrongParts(section.schema, merged)
  const value = wrong.length === 0 ? merged : salvage(section, merged)
  const instead = value === section.default ? 'the default is used instead' : 'only what is valid is used'
  for (const { path, message } of wrong.slice(0, MAX_REPORTS)) {
    report(`config.toml: ${pathOf(section.name, path)}: ${message}; ${instead}`)
  }
  for (const { path, message } of reviewed(section, value)) report(`config.toml: ${pathOf(section.name, path)}: ${message}`)
  for (const { path, message } of misspelt(section, stored).slice(0, MAX_REPORTS))
    report(`config.toml: ${pathOf(section.name, path)}: ${message}`)
  for (const [key, replacement] of Object.entries(section.retired ?? {})) {
    if (isTable(stored) && Object.hasOwn(stored, key)) report(`config.toml: ${section.name}.${key} is no longer read; use ${replacement}`)
  }
  return value
}

const wrong = new RecordMemo<Detail | undefined>()
const remarks = new RecordMemo<readonly ConfigRemark[]>()

/** The first problem of every entry of a map or list; of anything else the first one. Names in maps may be any text. */
function wrongParts(schema: TSchema, value: unknown): Detail[] {
  const inner = entrySchema(schema, value)
  if (!inner) return problems(schema, value).slice(0, 1)
  return Object.keys(value as Table).flatMap(key => firstProblem(inner, key, (value as Table)[key]) ?? [])
}

function firstProblem(schema: TSchema, key: string, entry: unknown): Detail | undefined {
  return wrong.of(schema, key, entry, () => problems(schema, entry, key)[0])
}

/** What the section says about a value that fits its schema. */
function reviewed(section: ConfigSection, value: unknown): readonly ConfigRemark[] {
  if (!section.review) return []
  if (!isMap(section) || !isTable(value)) return section.review(value)
  const review = (name: string) => (record: unknown) => section.review?.(Object.fromEntries([[name, record]])) ?? []
  return Object.keys(value).flatMap(name => remarks.of(section, name, value[name], review(name)))
}

function salvage(section: ConfigSection, value: unknown): unknown {
  return section.salvage ? section.salvage(value) : validEntries(section, value)
}

/** One mistyped provider must not take the others with it. What has no entries is the default as a whole. */
function validEntries({ schema, default: instead }: ConfigSection, value: unknown): unknown {
  const inner = entrySchema(schema, value)
  if (!inner) return instead
  const entries = Object.entries(value as object).filter(([key, item]) => !firstProblem(inner, key, item))
  return Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries)
}

/** What the entries of a map or list must be. */
function entrySchema(schema: TSchema, value: unknown): TSchema | undefined {
  return isTable(value) ? mapValue(schema) : Array.isArray(value) ? (schema.items as TSchema | undefined) : undefined
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
