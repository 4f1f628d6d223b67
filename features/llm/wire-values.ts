/** Values that a server sent, which may be anything. */
import { isRecord } from '../../kernel/index.ts'

/** The value of a JSON text; undefined for what is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // what that means is up to the caller
  }
}

/** A count of tokens as providers report it; 0 for anything that is none. */
export function tokenCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
}

/** What a chunk lacks, in each of thousands of them. */
const noFields: Readonly<Record<string, unknown>> = {}
const noItems: readonly unknown[] = []

/** A value from the wire as an object; `{}` for anything else. Decoders look into fields that a server may have filled with anything. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : noFields
}

/** A value from the wire as a list; empty for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : noItems
}

/** A value from the wire as a text; empty for anything else. */
export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Of several answers that an upstream gives side by side, the first: the entry that says so, or says nothing of its place. */
export function firstAnswer(list: unknown): Readonly<Record<string, unknown>> {
  return (
    listOf(list)
      .map(recordOf)
      .find(({ index }) => (index ?? 0) === 0) ?? noFields
  )
}
