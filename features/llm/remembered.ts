/** What follows from a text alone: worked out once for texts that are asked about again and again. */

/** Texts that are remembered; beyond them all are forgotten. */
const most = 500

export function remembered<R extends NonNullable<unknown>>(make: (text: string) => R): (text: string) => R {
  const known = new Map<string, R>()
  return text => {
    const found = known.get(text)
    if (found !== undefined) return found
    const made = make(text)
    if (known.size >= most) known.clear()
    known.set(text, made)
    return made
  }
}
