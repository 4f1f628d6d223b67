/** Every command that a line may run, in the forms a rule may name it. Better one too many than one missed. */
import { readShell } from './shell-text.ts'

/** Words before a command that are not its name. */
const keywords = new Set(['if', 'then', 'elif', 'else', 'while', 'until', 'do', '!', '{', 'time', 'coproc'])
/** Commands that run another command which stands among their words. */
const carriers = new Set(
  'sudo doas env command builtin exec eval nohup nice ionice setsid stdbuf timeout xargs find watch time sh bash dash zsh ksh su'.split(' ')
)
/** Words of a carrier that are looked at as the beginning of the carried command. */
const LOOKED_AT = 20
const DEPTH = 3

export function commandsIn(line: string, depth = 0): string[] {
  const { commands, nested } = readShell(line)
  const pieces = commands.map(({ from, to }) => line.slice(from, to))
  if (nested) pieces.push(...line.split(/[;&|\n(){}`]/))
  return pieces.flatMap(piece => forms(piece.trim(), depth))
}

/** The command as written, and with quotes, assignments, redirections in front and directories taken off. */
function forms(piece: string, depth: number): string[] {
  const words = afterPrefix(wordsOf(piece))
  const first = words[0]
  if (first === undefined) return [piece]
  const name = first.slice(first.lastIndexOf('/') + 1)
  const rest = words.slice(1)
  const found = [piece, words.join(' '), [name, ...rest].join(' ')]
  if (!carriers.has(name)) return found
  for (const [index, word] of rest.slice(0, LOOKED_AT).entries()) {
    const carried = rest.slice(index)
    found.push(carried.join(' '), [word.slice(word.lastIndexOf('/') + 1), ...carried.slice(1)].join(' '))
    if (depth < DEPTH && /[\s;&|]/.test(word)) found.push(...commandsIn(word, depth + 1))
  }
  return found
}

function afterPrefix(words: readonly string[]): readonly string[] {
  let at = 0
  for (let word = words[at]; word !== undefined; word = words[at]) {
    if (/^\d*(?:[<>]|&>)/.test(word)) at += /[\w/.-]/.test(word.replace(/^\d+/, '')) ? 1 : 2
    else if (keywords.has(word) || /^[A-Za-z_]\w*\+?=/.test(word)) at++
    else break
  }
  return words.slice(at)
}

/** Words without their quotes. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  let word: string | undefined
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (char === ' ' || char === '\t' || char === '\n') {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (char === '\\') {
      const next = text[++at] ?? ''
      word = (word ?? '') + (next === '\n' ? '' : next)
    } else if (char === "'" || char === '"') {
      const end = endOfQuote(text, at)
      const inner = text.slice(at + 1, end)
      word = (word ?? '') + (char === '"' ? inner.replace(/\\([\\"$`])/g, '$1') : inner)
      at = end
    } else if (char !== '$' || (text[at + 1] !== "'" && text[at + 1] !== '"')) word = (word ?? '') + char
  }
  if (word !== undefined) words.push(word)
  return words
}

function endOfQuote(text: string, start: number): number {
  const quote = text[start]
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === quote) return at
    if (quote === '"' && text[at] === '\\') at++
  }
  return text.length
}
