/** The place of a text that shows why it was found. */
import { normalise, runsOf, termOf } from './tokens.ts'

const around = 80

/** Up to 80 characters on both sides of the first match, `…` where the text goes on; a short text whole. */
export function snippetOf(text: string, mode: 'terms' | 'literal', needles: readonly string[]): string {
  const normal = normalise(text)
  const shown = normal.length === text.length ? text : normal // else positions do not agree
  const [at, length] = mode === 'literal' ? [normal.indexOf(needles[0] ?? ''), needles[0]?.length ?? 0] : firstOf(normal, needles)
  let from = Math.max(0, Math.max(0, at) - around)
  let to = Math.min(shown.length, Math.max(0, at) + length + around)
  if (from > 0 && isLow(shown, from)) from--
  if (to < shown.length && isLow(shown, to)) to++
  return `${from > 0 ? '…' : ''}${shown.slice(from, to)}${to < shown.length ? '…' : ''}`
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
