/** How domains look to clients. */
import { convertKeys } from './casing.ts'
import { redact } from './redaction.ts'
import type { ConfigSection } from './service.ts'
import { own, type Table } from './tables.ts'

/** A domain as clients see it: the section's own wire form, or the value without secrets in camelCase. */
export function domainToWire(section: ConfigSection, value: unknown): unknown {
  const names = holdsNames(section)
  if (section.toWire) return redact(section.toWire(value), { names })
  return convertKeys(section.name, redact(value, { names, secrets: section.secrets }), 'camel', section.schema)
}

/** A domain of the file in its own spelling, without secrets. */
export function rawToWire(name: string, section: ConfigSection | undefined, value: unknown): unknown {
  if (!section) return own(redact({ [name]: value }) as Table, name)
  return redact(value, { names: holdsNames(section), secrets: section.secrets })
}

/** The keys right below the domain are names that users chose. */
function holdsNames({ schema }: ConfigSection): boolean {
  return schema.patternProperties !== undefined
}
