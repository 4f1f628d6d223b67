/** The narrow reading of a command: its words, and which of them no wildcard of an allowing rule stands for. */
import type { Command, SyntaxNode, TestExpression } from 'unbash'
import { matchText } from '../../tools/index.ts'
import { carriedAt, commandsFrom, launchMark, runsOthers } from './carriers.ts'
import { type Files, isHarmless } from './files-in.ts'
import { riskOf } from './flags.ts'
import { computing, flagged, readsInput, runsScript } from './scripts.ts'
import type { Values } from './survey.ts'
import { baseOf, climbs, isPlain, literal, mayBeFlags, textOf, WORDS } from './words.ts'

/** A piece of a command's text; `spelled`: no wildcard of a rule stands for it. */
export interface Piece {
  readonly text: string
  readonly spelled: boolean
  /** A rule may leave it out. */
  readonly free?: boolean
  /** No words follow: a rule that means some by a wildcard means none, too. */
  readonly bare?: boolean
}

export function piecesOf(node: SyntaxNode, line: string, files: Files, values: Values): Piece[] {
  if (node.type === 'TestCommand') return [{ text: line.slice(node.pos, node.end), spelled: !onlyLooks(node.expression) }]
  if (node.type !== 'Command' || !node.name || node.args.length >= WORDS) return [{ text: line.slice(node.pos, node.end), spelled: true }]
  const words = [node.name.value, ...node.args.map(each => (each.type === 'Word' ? textOf(each) : each.text))]
  const { spelled, risky } = mustSpell(words)
  const reads = readsInput(words)
  const prefix = node.prefix.map(each => pieceOf(each, line, files, true))
  const leads = literal(node.name) === undefined || climbs(node.name.value)
  const name = { text: node.name.text, spelled: spelled.has(0) || leads, bare: node.suffix.length === 0 && !reads }
  let index = 0
  const suffix = node.suffix.map(each => {
    if (each.type !== 'Word' && each.type !== 'Assignment') return pieceOf(each, line, files, reads)
    const hidden = each.type === 'Word' && (climbs(textOf(each)) || (risky && (mayBeFlags(each, files.moves) || values.sets(each))))
    return pieceOf(each, line, files, spelled.has(++index) || hidden || reads || files.own.has(each))
  })
  return [...prefix, name, ...suffix].filter(piece => piece !== undefined)
}

/** Undefined for what changes nothing: output thrown away, a stream joined to another. */
function pieceOf(
  node: Command['prefix'][number] | Command['suffix'][number],
  line: string,
  files: Files,
  spelled: boolean
): Piece | undefined {
  const text = line.slice(node.pos, node.end)
  switch (node.type) {
    case 'Word':
      return { text, spelled: spelled || !isPlain(node) }
    case 'Assignment':
      return { text, spelled: !harmless.test(text), free: harmless.test(text) }
    case 'Redirect':
      return isHarmless(node) ? undefined : { text, spelled: node.operator !== '<' || spelled || !files.mayRead(node) }
    case 'HereString':
      return { text, spelled: spelled || !node.target || !isPlain(node.target) }
    case 'HereDoc':
      return { text, spelled: spelled || !isPlain(node.body) }
  }
}

/** A condition that neither computes nor assigns. */
function onlyLooks(expression: TestExpression): boolean {
  switch (expression.type) {
    case 'TestUnary':
      return !/^-[vR]$/.test(expression.operator) && isPlain(expression.operand)
    case 'TestBinary':
      return !/^-(?:eq|ne|lt|le|gt|ge)$/.test(expression.operator) && isPlain(expression.left) && isPlain(expression.right)
    case 'TestLogical':
      return expression.operands.every(onlyLooks)
    case 'TestNot':
      return onlyLooks(expression.operand)
    case 'TestGroup':
      return onlyLooks(expression.expression)
  }
}

/** Variables that programs are told by how to print and where they run, and that name no program or file to load. */
const harmless =
  /^(?:CARGO_TERM_COLOR|CI|CLICOLOR(?:_FORCE)?|COLUMNS|DEBUG|FORCE_COLOR|GOARCH|GOOS|LANG|LC_[A-Z]+|LINES|LOG_LEVEL|NODE_ENV|NO_COLOR|PORT|PYTHONUNBUFFERED|RAILS_ENV|RUST_BACKTRACE|RUST_LOG|TERM|TZ|VERBOSE)=[\w.,:@*-]*$/

/** Whether an allowing rule stands for all of the command, or is the whole line (`subject`). */
export function coverage(given: readonly Piece[], subject: string): (pattern: string) => boolean {
  let made: readonly Reading[] | undefined
  const readings = () => (made ??= readingsOf(given))
  return pattern => {
    if (/^\*+$/.test(pattern)) return true
    if (/[*?]/.test(pattern.replace(/\\./gs, ''))) return readings().some(({ text, fixed }) => matchText(pattern, text, fixed))
    return matchText(pattern, subject) || readings().some(({ text }) => matchText(pattern, text))
  }
}

/** A command's text as rules compare it, with what no wildcard stands for. */
interface Reading {
  readonly text: string
  readonly fixed: (at: number) => boolean
}

/** With and without what a rule may leave out. */
function readingsOf(given: readonly Piece[]): Reading[] {
  const some = given.filter(piece => !piece.free)
  return (some.length < given.length ? [given, some] : [given]).flatMap(pieces => {
    const text = pieces.map(piece => piece.text).join(' ')
    const spelled = new Uint8Array(text.length)
    let at = 0
    for (const piece of pieces) {
      if (piece.spelled) spelled.fill(1, at, at + piece.text.length)
      at += piece.text.length + 1
    }
    return (pieces.at(-1)?.bare ? ['', ' '] : ['']).map(blank => ({ text: text + blank, fixed: (at: number) => spelled[at] === 1 }))
  })
}

/**
 * Indexes of the words that a rule must spell out: no wildcard stands for them. `words[0]` is the program. `risky`: a file pattern among the
 * words could come out as a flag that matters.
 */
function mustSpell(words: readonly string[]): { readonly spelled: ReadonlySet<number>; readonly risky: boolean } {
  const found = new Set<number>()
  const begins = commandsFrom(words)
  for (const from of begins) {
    const own = words.slice(from)
    const name = baseOf(own[0]!)
    const whole = alwaysWhole(name, own)
    const risks = riskOf(name)?.(own)
    const mark = launchMark(own)
    if (from > 0) found.add(from)
    if (mark > 0 && !runsScript(own)) found.add(from + mark)
    for (const [index, word] of own.entries()) if (whole || (index > 0 && risks?.(word, index))) found.add(from + index)
    if (whole) break
  }
  return { spelled: found, risky: begins.some(from => isRisky(baseOf(words[from]!))) }
}

const isRisky = (name: string): boolean => riskOf(name) !== undefined || flagged.has(name)

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
  return computing.has(name)
}
