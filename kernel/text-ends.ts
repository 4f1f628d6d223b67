/** The beginning and the end of a text, in whole characters: half of a surrogate pair is none, and strict readers of JSON refuse it. */

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
