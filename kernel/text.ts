/** Texts: of JSON, cut in whole characters (strict readers of JSON refuse half a surrogate pair), words of a shell, the word that was meant. */

/** The first `count` UTF-16 units, without half a character at the cut. */
export function headOf(text: string, count: number): string {
  const cut = text.slice(0, count)
  return cut.length < text.length && /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}

/** The last `count` UTF-16 units, without half a character at the cut. */
export function tailOf(text: string, count: number): string {
  const cut = count === 0 ? '' : text.slice(-count)
  return cut.length < text.length && /^[\udc00-\udfff]/.test(cut) ? cut.slice(1) : cut
}

/** One word of a POSIX shell, whatever is in it: for commands, also those that people are told to run. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/** The text in at most `max` UTF-16 units, the last of which is `…` where it was cut. */
export function shortened(text: string, max: number): string {
  return text.length > max ? `${headOf(text, max - 1)}…` : text
}

/** The same of a text in one line: white space of any kind becomes single blanks. */
export function shortLine(text: string, max: number): string {
  return shortened(text.replace(/\s+/g, ' ').trim(), max)
}

/** The value of a JSON text; undefined for what is no JSON (torn, damaged, of somebody else). */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // what that means is up to the caller
  }
}

/** `snake_case` as `snakeCase`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** The known word that is nearest; undefined when none is near: beyond two changed letters, or `far` of them. */
export function nearest(given: string, known: readonly string[], far = given.length <= 4 ? 1 : 2): string | undefined {
  let best: string | undefined
  let distance = far + 1
  for (const word of known) {
    if (Math.abs(word.length - given.length) >= distance) continue
    const d = distanceOf(given, word)
    if (d < distance) [best, distance] = [word, d]
  }
  return best
}

/** Levenshtein distance; the words are short. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
