/** The place of a text that shows why it was found. */
import { normalise, runsOf, termOf } from './tokens.ts'

const around = 80

/** Up to 80 characters on both sides of the first match, as they were written, `…` where the text goes on; a short text whole. */
export function snippetOf(text: string, mode: 'terms' | 'literal', needles: readonly string[]): string {
  const normal = normalise(text)
  const [at, length] = mode === 'literal' ? [normal.indexOf(needles[0] ?? ''), needles[0]?.length ?? 0] : firstOf(normal, needles)
  const place = placeOf(text, Math.max(0, at))
  let from = Math.max(0, place - around)
  let to = Math.min(text.length, place + placeOf(text.slice(place), length) + around)
  if (from > 0 && isLow(text, from)) from--
  if (to < text.length && isLow(text, to)) to++
  return `${from > 0 ? '…' : ''}${text.slice(from, to)}${to < text.length ? '…' : ''}`
}

/** Where in a text something is that is at `at` of its normalised form, which may be longer or shorter: in ever smaller pieces. */
function placeOf(text: string, at: number): number {
  let [place, left] = [0, at]
  for (const pieces of [/.{500}\S*|.+/gs, /\s+|\S+/g, /\P{M}\p{M}*|\p{M}+/gu]) {
    for (const [piece] of text.slice(place).matchAll(pieces)) {
      const { length } = normalise(piece)
      if (length > left) {
        if (length === piece.length) return place + left
        break
      }
      place += piece.length
      left -= length
    }
  }
  return place
}

function firstOf(normal: string, terms: readonly string[]): [at: number, length: number] {
  const words = new Set(terms)
  for (const run of runsOf(normal)) {
    if (!run.cjk && words.has(termOf(run.text))) return [run.at, run.text.length]
    const inside = run.cjk ? terms.flatMap(term => (run.text.includes(term) ? [{ at: run.at + run.text.indexOf(term), term }] : [])) : []
    const [first] = inside.sort((a, b) => a.at - b.at)
    if (first) return [first.at, first.term.length]
  }
  return [0, 0]
}

/** Whether the second half of a character begins there. */
const isLow = (text: string, at: number) => (text.charCodeAt(at) & 0xfc00) === 0xdc00
