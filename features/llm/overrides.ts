/** A model record with its overrides over it. */
import type { ModelRecord } from './sections.ts'

/** Fields that say whose model it is and how it is reached: no override changes them. */
export const fixedFields = ['provider', 'model', 'protocol', 'base_url', 'beta_api', 'name', 'aliases'] as const

/** The record as it counts. Fixed fields among the overrides are passed over. */
export function withOverrides(record: ModelRecord): ModelRecord {
  if (!record.overrides) return record
  const result: ModelRecord = { ...record, ...record.overrides }
  for (const field of fixedFields) Object.assign(result, { [field]: record[field] })
  return result
}
