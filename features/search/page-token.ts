/** Page tokens: opaque, bound to the conditions of the query and to the index as it was when the first page was made. */
import { createHash } from 'node:crypto'

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
  return Buffer.from(JSON.stringify({ v: 1, f: conditions, g: generation, e: end, b: position })).toString('base64url')
}

/** Undefined for what this program did not write. */
export function readToken(text: string): PageToken | undefined {
  try {
    const { v, f, g, e, b } = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Record<string, unknown>
    const whole = v === 1 && typeof f === 'string' && typeof g === 'string' && Number.isSafeInteger(e) && Array.isArray(b) && b.length === 3
    if (!whole || typeof b[0] !== 'number' || typeof b[1] !== 'number' || typeof b[2] !== 'string') return undefined
    return { conditions: f as string, generation: g as string, end: e as number, position: [b[0], b[1], b[2]] }
  } catch {
    return undefined
  }
}
