/** Words that an allowing rule must spell out: no wildcard stands for them. */
import { carriedAt, commandsFrom, launchMark, runsOthers } from './carriers.ts'
import { riskOf } from './flags.ts'
import { computes, isFlagged, runsScript } from './scripts.ts'
import { baseOf } from './words.ts'

/** Indexes of the words that a rule must spell out: no wildcard stands for them. `words[0]` is the program. */
export function mustSpell(words: readonly string[]): ReadonlySet<number> {
  const found = new Set<number>()
  for (const from of commandsFrom(words)) {
    const own = words.slice(from)
    const name = baseOf(own[0]!)
    const whole = alwaysWhole(name, own)
    const risk = riskOf(name)
    const mark = launchMark(own)
    if (from > 0) found.add(from)
    if (mark > 0 && !runsScript(own)) found.add(from + mark)
    for (const [index, word] of own.entries()) if (whole || (index > 0 && risk?.(word, index, own))) found.add(from + index)
    if (whole) break
  }
  return found
}

/** Whether a file pattern among the words could come out as a flag that matters. */
export function hasRiskyFlags(words: readonly string[]): boolean {
  return commandsFrom(words).some(from => isRisky(baseOf(words[from]!)))
}

const isRisky = (name: string): boolean => riskOf(name) !== undefined || isFlagged(name)

/** Whether nothing but the whole command may be allowed. */
function alwaysWhole(name: string, words: readonly string[]): boolean {
  if (name === 'printf') return words.some((word, index) => index === 1 && word.startsWith('-v'))
  if (name === 'test' || name === '[') return words.some(word => word === '-v' || word === '-R')
  if (name === 'wait') return words.some(word => word.startsWith('-') && word.includes('p'))
  if (name === 'source' || name === '.') return false
  if (name === 'xargs') {
    // what comes from its input may be a flag of the command
    const carried = baseOf(words[carriedAt(words) ?? words.length] ?? 'echo')
    return isRisky(carried) || runsOthers(carried)
  }
  return computes(name)
}
