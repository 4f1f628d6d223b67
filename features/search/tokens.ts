/** What a text is found by: words in lower case, and of Chinese, Japanese and Korean the characters and their pairs. */

const cjk = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー々〇]/u
const anyCjk = new RegExp(cjk.source, 'u')
const runs = new RegExp(`(?:${cjk.source})+|(?:(?!${cjk.source})[\\p{L}\\p{N}\\p{M}])+`, 'gu')
const asciiRuns = /[a-z0-9]+/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
const ascii = /^[\x00-\x7f]*$/

/** Characters of a term: of a longer word, its beginning. */
export const termChars = 64

export const termOf = (word: string): string => (word.length > termChars ? word.slice(0, termChars) : word)

/** Equal texts in all their spellings (NFKC), in lower case. */
export function normalise(text: string): string {
  return ascii.test(text) ? text.toLowerCase() : text.normalize('NFKC').toLowerCase()
}

export interface Run {
  readonly text: string
  readonly at: number
  readonly cjk: boolean
}

/** Words and runs of Chinese, Japanese or Korean characters of a normalised text. */
export function runsOf(normal: string): Run[] {
  const isAscii = ascii.test(normal)
  return [...normal.matchAll(isAscii ? asciiRuns : runs)].map(({ 0: text, index }) => ({
    text,
    at: index,
    cjk: !isAscii && anyCjk.test(text)
  }))
}

/** Terms of a document, each with how often it occurs, and how many there are. */
export function termsOf(text: string): { readonly counts: ReadonlyMap<string, number>; readonly length: number } {
  const counts = new Map<string, number>()
  let length = 0
  const add = (term: string) => {
    counts.set(term, (counts.get(term) ?? 0) + 1)
    length++
  }
  const normal = normalise(text)
  const isAscii = ascii.test(normal)
  for (const run of normal.match(isAscii ? asciiRuns : runs) ?? []) {
    if (isAscii || !anyCjk.test(run)) add(termOf(run))
    else for (const gram of gramsOf(run)) add(gram)
  }
  return { counts, length }
}

/** Each once. A run of several characters is asked for by its pairs, which imply the characters. */
export function queryTerms(query: string): string[] {
  const terms = runsOf(normalise(query)).flatMap(run => {
    if (!run.cjk) return [termOf(run.text)]
    const pairs = pairsOf(run.text)
    return pairs.length > 0 ? pairs : [run.text]
  })
  return [...new Set(terms)]
}

export function pairsOf(run: string): string[] {
  const characters = [...run]
  return characters.slice(1).map((character, n) => `${characters[n]}${character}`)
}

const gramsOf = (run: string) => [...run, ...pairsOf(run)]
