/** Tells a renamed value from one that went and another that came, so that it keeps its place and its comments. */
import { isTable, own, same, type Table } from './tables.ts'

/** At one place: when hundreds of values come and go together, they are new ones. */
const MAX_COMPARISONS = 2_500

/**
 * Old name to new name of values that went at a place where one came: between the same neighbours, tables with at least one equal field,
 * others equal. Of several tables the one with most equal fields counts; an only one needs none.
 */
export function renamedValues(before: Table, next: Table): Map<string, string> {
  const renamed = new Map<string, string>()
  const gone = gaps(before, next)
  if (gone.size === 0) return renamed
  for (const [gap, names] of gaps(next, before)) {
    const candidates = gone.get(gap) ?? []
    if (names.length * candidates.length > MAX_COMPARISONS) continue
    if (names.length === 1 && candidates.length === 1 && isTable(next[names[0]!]) && isTable(before[candidates[0]!])) {
      renamed.set(candidates[0]!, names[0]!)
    }
    for (const name of names) {
      let best: { readonly name: string; readonly score: number } | undefined
      for (const candidate of candidates) {
        if (renamed.has(candidate)) continue
        const score = likeness(own(before, candidate), own(next, name))
        if (score > (best?.score ?? 0)) best = { name: candidate, score }
      }
      if (best) renamed.set(best.name, name)
    }
  }
  return renamed
}

/** Values that `other` does not have, by the key that both have before them. */
function gaps(table: Table, other: Table): Map<string | undefined, string[]> {
  const found = new Map<string | undefined, string[]>()
  let last: string | undefined
  for (const key of Object.keys(table)) {
    if (Object.hasOwn(other, key)) last = key
    else {
      const names = found.get(last)
      if (names) names.push(key)
      else found.set(last, [key])
    }
  }
  return found
}

/** Equal fields of tables; others are alike when they are equal. */
function likeness(a: unknown, b: unknown): number {
  if (!isTable(a) || !isTable(b)) return same(a, b) ? 1 : 0
  return Object.entries(a).filter(([key, value]) => Object.hasOwn(b, key) && same(value, b[key])).length
}
