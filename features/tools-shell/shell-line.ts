/**
 * One reading of a command line for all permission rules, from its syntax tree. Allowing is read narrowly: a line is the sum of its simple
 * commands, and no wildcard stands for anything that makes the shell do more than run one of them. Denying and asking are read widely.
 */
import { resolve } from 'node:path'
import { type Command, type ParsedScript, parse, type SyntaxNode, type TestExpression } from 'unbash'
import { yieldToLoop } from '../../kernel/index.ts'
import { matchText, type RulePart } from '../tools/index.ts'
import { CommandsIn, DARK } from './commands-in.ts'
import { type FileAccess, type Files, filesOf, isHarmless } from './files-in.ts'
import { hasRiskyFlags, mustSpell, readsInput } from './programs.ts'
import { climbs, isPlain, literal, mayBeFlags } from './words.ts'

export interface ShellLine {
  /** The line as rules see it: in another directory than the session's, `cd '<cwd>' && <line>`. */
  readonly subject: string
  /** Its simple commands, and what is no simple command as a whole. */
  readonly parts: readonly RulePart[]
  /** The line runs something that its text does not name. */
  readonly uncertain: boolean
  /** Files that redirections read and write, links resolved. */
  readonly accesses: readonly FileAccess[]
}

/** Longer lines are not taken apart. */
const READ_CHARS = 100_000
const UNREAD: ParsedScript = { type: 'Script', pos: 0, end: 0, shebang: undefined, commands: [], errors: [{ message: 'too long', pos: 0 }] }

/**
 * Reads a line that will run in `cwd`, for a session that works in `base`; both absolute. `isOwn`: whether a path is the server's own; words
 * that name such a file count as reading it.
 */
export async function readLine(line: string, cwd: string, base: string, isOwn: (path: string) => boolean): Promise<ShellLine> {
  const script = line.length <= READ_CHARS ? parse(line) : UNREAD
  const files = await filesOf(script, cwd, isOwn)
  const change = resolve(cwd) === resolve(base) ? undefined : `cd '${cwd.replaceAll("'", "'\\''")}'`
  const subject = change === undefined ? line : `${change} && ${line}`
  const nodes = script.errors?.length ? [] : leavesOf(script)
  const read = (node: SyntaxNode, pieces: readonly Piece[]) => {
    const commands = new CommandsIn(parse)
    commands.visit(node)
    return { part: partOf(pieces, commands, subject), uncertain: commands.uncertain }
  }
  const found: ReturnType<typeof read>[] = []
  for (const node of nodes) {
    const others = yieldToLoop() // a line may have thousands of commands
    if (others) await others
    found.push(read(node, piecesOf(node, line, files)))
  }
  if (found.length === 0) found.push(read(script, [{ text: line, spelled: true }]))
  if (change !== undefined) found.push(read(parse(change), [{ text: change, spelled: false }]))
  const whole = (pattern: string) => matchText(pattern, line) || matchText(pattern, subject)
  return {
    subject,
    parts: found.map(({ part }, index) => (index > 0 ? part : { ...part, names: pattern => part.names(pattern) || whole(pattern) })),
    uncertain: found.some(each => each.uncertain),
    accesses: files.accesses
  }
}

/** The commands that lists, pipelines, groups and branches are made of. What assigns, defines or computes stays whole. */
function leavesOf(node: SyntaxNode): SyntaxNode[] {
  switch (node.type) {
    case 'Script':
    case 'CompoundList':
    case 'AndOr':
    case 'Pipeline':
      return node.commands.flatMap(leavesOf)
    case 'Statement':
      return leavesOf(node.command)
    case 'Subshell':
    case 'BraceGroup':
      return leavesOf(node.body)
    case 'If':
      return [node.clause, node.then, ...node.elif.flatMap(each => [each.clause, each.then]), ...(node.else ? [node.else] : [])].flatMap(
        leavesOf
      )
    case 'While':
      return [node.clause, node.body].flatMap(leavesOf)
    case 'Case':
      if (![node.word, ...node.items.flatMap(item => item.pattern)].every(isPlain)) return [node]
      return node.items.flatMap(item => leavesOf(item.body))
    case 'Redirected':
      return node.redirects.every(isHarmless) ? leavesOf(node.command) : [node]
    default:
      return [node]
  }
}

/** A piece of a command's text; `spelled`: no wildcard of a rule stands for it. */
interface Piece {
  readonly text: string
  readonly spelled: boolean
  /** A rule may leave it out. */
  readonly free?: boolean
  /** No words follow: a rule that means some by a wildcard means none, too. */
  readonly bare?: boolean
}

function piecesOf(node: SyntaxNode, line: string, files: Files): Piece[] {
  if (node.type === 'TestCommand') return [{ text: line.slice(node.pos, node.end), spelled: !onlyLooks(node.expression) }]
  if (node.type !== 'Command' || !node.name) return [{ text: line.slice(node.pos, node.end), spelled: true }]
  const words = [node.name.value, ...node.args.map(each => (each.type === 'Word' ? each.value : each.text))]
  const spelled = mustSpell(words)
  const flags = hasRiskyFlags(words)
  const reads = readsInput(words)
  const prefix = node.prefix.map(each => pieceOf(each, line, files, true))
  const leads = literal(node.name) === undefined || climbs(node.name.value)
  const name = { text: node.name.text, spelled: spelled.has(0) || leads, bare: node.suffix.length === 0 && !reads }
  let index = 0
  const suffix = node.suffix.map(each => {
    if (each.type !== 'Word' && each.type !== 'Assignment') return pieceOf(each, line, files, reads)
    const hidden = each.type === 'Word' && (climbs(each.value) || (flags && mayBeFlags(each, files.moves)))
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

function partOf(given: readonly Piece[], { forms, suspected }: CommandsIn, subject: string): RulePart {
  let made: readonly Reading[] | undefined
  const readings = () => (made ??= readingsOf(given))
  return {
    covers(pattern) {
      if (/^\*+$/.test(pattern)) return true
      if (/[*?]/.test(pattern.replace(/\\./gs, ''))) return readings().some(({ text, fixed }) => matchText(pattern, text, fixed))
      return matchText(pattern, subject) || readings().some(({ text }) => matchText(pattern, text))
    },
    names: pattern => [...forms].some(form => meansForm(pattern, form)),
    suspects(pattern) {
      const subcommand = /^\S+ (\w[\w-]*)/.exec(pattern)?.[1] ?? DARK
      return [...suspected].some(form => meansForm(pattern, form.replace(DARK, subcommand)))
    }
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

/** `rm *` means `rm` without arguments, too: they may come from elsewhere (xargs). */
function meansForm(pattern: string, form: string): boolean {
  return matchText(pattern, form) || matchText(pattern, `${form} `)
}
