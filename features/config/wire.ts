/** The configuration object of `GET /api/v1/config`: every domain without secrets, plus the redacted file. */
import { convertKeys } from './casing.ts'
import { redact } from './redaction.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { own, put, type Table } from './tables.ts'

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

/** A domain as clients see it: the section's own wire form, or the value without secrets in camelCase. */
export function domainToWire(section: ConfigSection, value: unknown): unknown {
  const names = holdsNames(section)
  if (section.toWire) return redact(section.toWire(value), { names })
  return convertKeys(section.name, redact(value, { names, secrets: section.secrets }), 'camel', section.schema)
}

function rawToWire(settings: Settings): Table {
  const result: Table = {}
  for (const [name, value] of Object.entries(settings.table)) {
    const section = settings.section(name)
    const clean = section
      ? redact(value, { names: holdsNames(section), secrets: section.secrets })
      : own(redact({ [name]: value }) as Table, name)
    if (clean !== undefined) put(result, name, clean)
  }
  return result
}

/** The keys right below the domain are names that users chose. */
function holdsNames({ schema }: ConfigSection): boolean {
  return schema.patternProperties !== undefined
}
