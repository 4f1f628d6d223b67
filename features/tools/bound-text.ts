/** Keeps the text of tool results within bounds and says so where it was cut. */
import { headOf } from '../../kernel/index.ts'

/** Stands at every cut place. */
export const CUT_MARK = '[...truncated]'

export interface Bounds {
  /** Characters in all; default 50000. */
  readonly chars?: number
  /** Characters per line; default 2000, Infinity for no line cap. */
  readonly line?: number
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
