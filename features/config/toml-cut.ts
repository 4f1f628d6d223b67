/** Cuts TOML texts into segments. Generators yield often, so that a large text can be read in shares of the event loop. */
import { isHeader, nextHeader } from './toml-scan.ts'
import { beginning, Segment } from './toml-segment.ts'

/** Segments of a text that begins with a header. */
export function* cut(text: string): Generator<void, Segment[], void> {
  const segments: Segment[] = []
  for (let at = 0; at < text.length; ) {
    const end = nextHeader(text, at)
    segments.push(new Segment(text.slice(at, end), false))
    at = end
    if (segments.length % 8 === 0) yield
  }
  return segments
}

/**
 * Segments of a document. Those of an earlier version are taken over: from both ends as far as the texts are equal, then by their text.
 * A parser that has the same lines before it reads the same, so they need not be read again.
 */
export function* recut(text: string, before: readonly Segment[]): Generator<void, Segment[], void> {
  const segments: Segment[] = []
  let at = 0
  for (const segment of before) {
    const end = at + segment.text.length
    if (!text.startsWith(segment.text, at) || !canEnd(text, end)) break
    segments.push(segment)
    at = end
    if (segments.length % 256 === 0) yield
  }
  if (segments.length === 0) {
    at = firstEnd(text)
    segments.push(new Segment(text.slice(0, at), true))
  }
  let tail = before.length
  let tailStart = text.length
  for (; tail > segments.length; tail--) {
    const piece = before[tail - 1]!.text
    const start = tailStart - piece.length
    if (start < at || !text.startsWith(piece, start)) break
    tailStart = start
    if (tail % 256 === 0) yield
  }
  const known = new Map(before.slice(segments.length, tail).map(segment => [segment.text, segment]))
  while (at < tailStart) {
    const end = nextHeader(text, at)
    const piece = text.slice(at, end)
    segments.push(known.get(piece) ?? new Segment(before.length > 0 ? detached(piece) : piece, false))
    at = end
    if (at > tailStart) tailStart = text.length // something that begins before the tail runs into it
    if (segments.length % 8 === 0) yield
  }
  return at < text.length ? segments.concat(before.slice(tail)) : segments
}

/** A segment may end here: the text does, or a header follows. */
function canEnd(text: string, end: number): boolean {
  return end === text.length || ((end === beginning(text) || text[end - 1] === '\n') && isHeader(text, end))
}

function firstEnd(text: string): number {
  const start = beginning(text)
  return isHeader(text, start) ? start : nextHeader(text, start)
}

/** A string of its own: a slice would keep the whole text in memory, and each version of the file would stay for what changed in it. */
function detached(piece: string): string {
  return Buffer.from(piece).toString()
}
