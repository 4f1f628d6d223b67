/** Where a provider of a registry came from: its record's `source`. */
import { isTable, type Table } from './tables.ts'

/** URL of the registry that a provider came from. */
export function registryOf(record: unknown): string | undefined {
  const source = sourceOf(record)
  return typeof source?.url === 'string' ? source.url : undefined
}

/** Id under which the registry lists a provider: a rename here does not rename it there. */
export function listedId(id: string, record: unknown): string {
  const listed = sourceOf(record)?.id
  return typeof listed === 'string' ? listed : id
}

/** The record with the registry's id in its source, when it has one and the provider is called otherwise here. */
export function withListedId(record: Table, listed: string, id: string): Table {
  const source = sourceOf(record)
  if (!source) return record
  const { id: _, ...rest } = source
  return { ...record, source: listed === id ? rest : { ...rest, id: listed } }
}

function sourceOf(record: unknown): Table | undefined {
  return isTable(record) && isTable(record.source) && record.source.kind === 'apiJson' ? record.source : undefined
}
