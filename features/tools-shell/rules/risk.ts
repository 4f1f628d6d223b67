/** How it is said which words of a program matter. */
import { list } from './words.ts'

/** Made for the words of one command (`words[0]` is the program): whether the word at an index is one. */
export type Risk = (words: readonly string[]) => (word: string, index: number) => boolean

/** Letters of short flags, names of long ones, harmless flags that such a name begins with, and other words. */
export function flags(letters: string, names = '', harmless = '', others?: RegExp): Risk {
  const long = list(names)
  const free = new Set(list(harmless))
  const risks = (word: string) => {
    if (others?.test(word)) return true
    if (!word.startsWith('-')) return false
    const name = word.replace(/^--?|=.*$/gs, '')
    if (word.startsWith('--')) return name !== '' && !free.has(name) && long.some(full => full.startsWith(name))
    return [...name].some(letter => letters.includes(letter))
  }
  return () => risks
}

/**
 * Flags count until the first operand: what follows belongs to the script. A word behind a flag may be its value, but not behind one that is
 * `bare`.
 */
export function own(letters: string, names: string, bare: RegExp, others?: RegExp): Risk {
  const risk = flags(letters, names, '', others)
  return words => {
    const last = leading(words, bare)
    const risks = risk(words)
    return (word, index) => index <= last && risks(word, index)
  }
}

/** Index of the last word before which only flags, and what may be their values, come. */
export function leading(words: readonly string[], bare?: RegExp): number {
  const isFlag = (word: string) => /^[-+]/.test(word)
  const first = words.findIndex(
    (word, at) => at > 0 && !isFlag(word) && (at === 1 || !isFlag(words[at - 1]!) || bare?.test(words[at - 1]!))
  )
  return first < 0 ? words.length : first
}

/** A file that lies elsewhere. */
const outside = /^[/~]|(?:^|\/)\.\.(?:\/|$)|^\$\{?(?:HOME|OLDPWD|PWD)\b/
/** Or one that is hidden: programs that find it there run it, or do as it says. */
const hidden = /(?:^|\/)\.(?!\/|$)/

/** The file that a word names, glued to a flag or behind it. */
function fileAt(valued: RegExp, words: readonly string[], index: number): string | undefined {
  const word = words[index]!
  const flag = valued.exec(word)?.[0]
  if (flag !== undefined && flag.length < word.length) return word.slice(flag.length).replace(/^=/, '')
  const before = words[index - 1] ?? ''
  return index > 1 && valued.exec(before)?.[0] === before ? word : undefined
}

/** For programs that are called to write: where the result goes is left to them, below the directory. `valued`: flags that name a file. */
export function writes(valued: RegExp): Risk {
  return words => (_, index) => {
    const file = fileAt(valued, words, index) ?? '/dev/null'
    return file !== '/dev/null' && (outside.test(file) || hidden.test(file))
  }
}

/** For programs that do as a file says: one of the directory is the project's. */
export function obeys(valued: RegExp): Risk {
  return words => (_, index) => outside.test(fileAt(valued, words, index) ?? '')
}

/** Such words anywhere. */
export function any(pattern: RegExp): Risk {
  return () => word => pattern.test(word)
}

/** What one of them says. */
export function either(...given: readonly Risk[]): Risk {
  return words => {
    const made = given.map(risk => risk(words))
    return (word, index) => made.some(risks => risks(word, index))
  }
}

/** For programs that write into what they are given, unless a flag says that they only look. */
export function rewrites(looks: RegExp): Risk {
  return words => (words.some(word => looks.test(word)) ? () => false : (_, index) => index > 0)
}
