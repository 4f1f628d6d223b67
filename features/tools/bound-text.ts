/** Keeps the text of tool results within bounds and says so where it was cut. */

/** Stands at every cut place. */
export const CUT_MARK = '[...truncated]'

export interface Bounds {
  /** Characters in all; default 50000. */
  readonly chars?: number
  /** Characters per line; default 2000, Infinity for no line cap. */
  readonly line?: number
}

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

/** Cuts long lines, then the whole text at a line break where possible. A cut text ends with a sentence that says so. */
export function boundText(text: string, bounds: Bounds = {}): { readonly text: string; readonly truncated: boolean } {
  const chars = bounds.chars ?? 50_000
  const line = bounds.line ?? 2_000
  let truncated = false
  let kept = text
  if (line !== Number.POSITIVE_INFINITY) {
    kept = kept
      .split('\n')
      .map(each => {
        if (each.length <= line) return each
        truncated = true
        return `${headOf(each, line)}${CUT_MARK}`
      })
      .join('\n')
  }
  if (kept.length > chars) {
    truncated = true
    const at = kept.lastIndexOf('\n', chars)
    kept = `${headOf(kept, at > chars / 2 ? at : chars)}\n${CUT_MARK}`
  }
  return truncated ? { text: `${kept}\nThe output was too long and has been cut.`, truncated } : { text: kept, truncated }
}
