/** Page tokens: opaque, bound to the conditions of the query and to the index as it was when the first page was made. */
import { createHash } from 'node:crypto'
import { fromPageToken, toPageToken } from '../../kernel/index.ts'

/** Where a page ended: score, time and key of its last document. */
export type Position = readonly [score: number, time: number, key: string]

export interface PageToken {
  /** Of the conditions. */
  readonly conditions: string
  readonly generation: string
  /** Documents that came later do not count. */
  readonly end: number
  readonly position: Position
}

export function conditionsOf(values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url').slice(0, 16)
}

export function writeToken({ conditions, generation, end, position }: PageToken): string {
  return toPageToken({ v: 1, f: conditions, g: generation, e: end, b: position })
}

/** Undefined for what this program did not write. */
export function readToken(text: string): PageToken | undefined {
  const { v, f, g, e, b } = (fromPageToken(text) ?? {}) as Record<string, unknown>
  const whole = v === 1 && typeof f === 'string' && typeof g === 'string' && Number.isSafeInteger(e) && Array.isArray(b) && b.length === 3
  if (!whole || typeof b[0] !== 'number' || typeof b[1] !== 'number' || typeof b[2] !== 'string') return undefined
  return { conditions: f as string, generation: g as string, end: e as number, position: [b[0], b[1], b[2]] }
}
