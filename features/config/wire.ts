/** The configuration object of `GET /api/v1/config`: every domain without secrets, plus the redacted file. */
import { convertKeys } from './casing.ts'
import { redact, redactNamed, removePaths } from './redaction.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { copy, isTable, own, put, type Table } from './tables.ts'

export function configObject(settings: Settings): Table {
  const result: Table = {}
  for (const section of settings.sections()) {
    const value = domainToWire(section, settings.get(section))
    if (value !== undefined) put(result, section.name, value)
  }
  result.yolo = result.default_permission_mode === 'yolo'
  result.raw = rawToWire(settings)
  return result
}

export function domainToWire(section: ConfigSection, value: unknown): unknown {
  const open = copy(value)
  if (!section.toWire) removePaths(open, section.secrets)
  const shown = section.toWire ? section.toWire(open as never) : open
  const clean = jsonable(holdsNames(section) ? redactNamed(shown) : redact(shown))
  return section.toWire ? clean : convertKeys(section.name, clean, 'camel', section.schema)
}

function rawToWire(settings: Settings): Table {
  const raw = copy(settings.table)
  const result: Table = {}
  for (const [name, value] of Object.entries(raw)) {
    const section = settings.section(name)
    removePaths(value, section?.secrets)
    const clean = section ? (holdsNames(section) ? redactNamed(value) : redact(value)) : own(redact({ [name]: value }) as Table, name)
    if (clean !== undefined) put(result, name, jsonable(clean))
  }
  return result
}

/** The keys right below the domain are names that users chose. */
function holdsNames({ schema }: ConfigSection): boolean {
  return schema.patternProperties !== undefined
}

/** Dates and large integers as text; JSON has neither. */
function jsonable(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(jsonable)
  if (!isTable(value)) return value
  const result: Table = {}
  for (const [key, item] of Object.entries(value)) put(result, key, jsonable(item))
  return result
}
