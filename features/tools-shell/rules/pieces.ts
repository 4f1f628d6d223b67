/** The narrow reading of a command: its words, and which of them no wildcard of an allowing rule stands for. */
import type { Command, TestExpression } from 'unbash'
import { matchText } from '../../tools/index.ts'
import { Call } from './call.ts'
import type { Files } from './files-in.ts'
import { programOf } from './programs.ts'
import { isHarmless, isInput, isNothing } from './redirects.ts'
import type { Found } from './tree.ts'
import type { Values } from './values.ts'
import { baseOf, climbs, isPlain, literal, mayBeFlags, textOf } from './words.ts'

/** A piece of a command's text; `spelled`: no wildcard of a rule stands for it. */
export interface Piece {
  readonly text: string
  readonly spelled: boolean
  /** A rule may leave it out. */
  readonly free?: boolean
  /** No words follow: a rule that means some by a wildcard means none, too. */
  readonly bare?: boolean
}

export function piecesOf({ node, call, fed }: Found, line: string, files: Files, values: Values): Piece[] {
  if (node.type === 'TestCommand') return [{ text: line.slice(node.pos, node.end), spelled: !onlyLooks(node.expression) }]
  if (node.type !== 'Command' || !node.name || !call) return [{ text: line.slice(node.pos, node.end), spelled: true }]
  const words = call.words.map((word, at) => (word ? textOf(word) : call.values[at]!))
  const isFed = fed || node.redirects.some(each => isInput(each) && !isNothing(each))
  const { spelled, risky, reads } = mustSpell(new Call(node, [], words), isFed)
  const leads = literal(node.name) === undefined || climbs(node.name.value)
  const name = { text: node.name.text, spelled: spelled.has(0) || leads, bare: node.suffix.length === 0 && !reads }
  const pieces = node.prefix.flatMap(each => pieceOf(each, line, files, true))
  pieces.push(name)
  let index = 0
  for (const each of node.suffix) {
    let hidden = reads
    if (each.type === 'Word' || each.type === 'Assignment') {
      index++
      hidden ||= spelled.has(index) || files.own.has(each)
      hidden ||= each.type === 'Word' && (climbs(words[index]!) || (risky && (mayBeFlags(each, files.moves) || values.sets(each))))
    }
    pieces.push(...pieceOf(each, line, files, hidden))
  }
  return pieces
}

/** None for what changes nothing: output thrown away, a stream joined to another. */
function pieceOf(node: Command['prefix'][number] | Command['suffix'][number], line: string, files: Files, spelled: boolean): Piece[] {
  const text = line.slice(node.pos, node.end)
  switch (node.type) {
    case 'Word':
      return [{ text, spelled: spelled || !isPlain(node) }]
    case 'Assignment':
      return [{ text, spelled: !harmless.test(text), free: harmless.test(text) }]
    case 'Redirect':
      return isHarmless(node) ? [] : [{ text, spelled: node.operator !== '<' || spelled || !files.mayRead(node) }]
    case 'HereString':
      return [{ text, spelled: spelled || !node.target || !isPlain(node.target) }]
    case 'HereDoc':
      return [{ text, spelled: spelled || !isPlain(node.body) }]
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
export function coverage(pieces: readonly Piece[], subject: string): (pattern: string) => boolean {
  let readings: readonly Reading[] | undefined
  return pattern => {
    if (/^\*+$/.test(pattern)) return true
    const isWild = /[*?]/.test(pattern.replace(/\\./gs, ''))
    readings ??= readingsOf(pieces)
    if (!isWild && matchText(pattern, subject)) return true
    return readings.some(({ text, fixed }) => matchText(pattern, text, isWild ? fixed : undefined))
  }
}

/** A command's text as rules compare it, with what no wildcard stands for. */
interface Reading {
  readonly text: string
  readonly fixed: (at: number) => boolean
}

/** With and without what a rule may leave out. */
function readingsOf(given: readonly Piece[]): Reading[] {
  const readings: Reading[] = []
  for (const pieces of given.some(piece => piece.free) ? [given, given.filter(piece => !piece.free)] : [given]) {
    const text = pieces.map(piece => piece.text).join(' ')
    const spelled = pieces.map(piece => (piece.spelled ? '!' : ' ').repeat(piece.text.length)).join(' ')
    const fixed = (at: number) => spelled[at] === '!'
    readings.push({ text, fixed })
    if (pieces.at(-1)?.bare) readings.push({ text: `${text} `, fixed })
  }
  return readings
}

/**
 * Indexes of the words that a rule must spell out: no wildcard stands for them. `risky`: a file pattern among the words could come out as a
 * flag that matters. `reads`: it runs what comes from its input. `isFed`: it has one.
 */
function mustSpell(
  call: Call,
  isFed: boolean
): { readonly spelled: ReadonlySet<number>; readonly risky: boolean; readonly reads: boolean } {
  const spelled = new Set<number>()
  const { chain } = call
  for (const { from, call: own } of chain) {
    const whole = alwaysWhole(own)
    const risks = own.program.risk?.(own.values)
    if (from > 0) spelled.add(from)
    if (own.mark > 0 && !own.runsScript) spelled.add(from + own.mark)
    for (const [index, word] of own.values.entries()) if (whole || (index > 0 && risks?.(word, index))) spelled.add(from + index)
    if (whole) break
  }
  const reads = chain.some(({ call: own }) => own.readsInput || (isFed && own.takesCommands))
  return { spelled, risky: chain.some(({ call: { program } }) => program.risky), reads }
}

/** Whether nothing but the whole command may be allowed. */
function alwaysWhole({ program, values, carried }: Call): boolean {
  switch (program.name) {
    case 'printf':
      return values[1]?.startsWith('-v') === true
    case 'test':
    case '[':
      return values.includes('-v') || values.includes('-R')
    case 'wait':
      return values.some(word => word.startsWith('-') && word.includes('p'))
    case 'source':
    case '.':
      return false
    case 'xargs': {
      // what comes from its input may be a flag of the command
      const runs = programOf(baseOf(values[carried ?? values.length] ?? 'echo'))
      return runs.risky || runs.runsOthers
    }
    default:
      return program.computes
  }
}
