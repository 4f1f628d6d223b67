/**
 * One reading of a command line for all permission rules, from its syntax tree. Allowing is read narrowly (`pieces.ts`), denying and asking
 * widely (`commands-in.ts`).
 */
import { resolve } from 'node:path'
import { type ParsedScript, parse, type SyntaxNode } from 'unbash'
import { yieldToLoop } from '../../../kernel/index.ts'
import { matchText, type RulePart, type Surroundings, type ToolExecution } from '../../tools/index.ts'
import { CommandsIn } from './commands-in.ts'
import { filesOf, isHarmless } from './files-in.ts'
import { coverage, type Piece, piecesOf } from './pieces.ts'
import { isPlain } from './words.ts'

/**
 * What rules judge of a call that runs a line. `approval_argument`: the line as rules see it, in another directory than the session's
 * `cd '<cwd>' && <line>`. `parts`: its simple commands, and what is no simple command as a whole. `uncertain`: it runs something that its text
 * does not name. `accesses`: files that redirections read and write, links resolved, and those of the server that words name.
 */
export type ReadLine = Required<Pick<ToolExecution, 'accesses' | 'approval_argument' | 'parts' | 'uncertain'>>

/** Longer lines are not taken apart. */
const READ_CHARS = 100_000
const UNREAD: ParsedScript = { type: 'Script', pos: 0, end: 0, shebang: undefined, commands: [], errors: [{ message: 'too long', pos: 0 }] }

/** Reads a line that will run in `cwd` (absolute), for an agent that works in `around`. */
export async function readLine(line: string, cwd: string, around: Surroundings): Promise<ReadLine> {
  const script = line.length <= READ_CHARS ? parse(line) : UNREAD
  const files = await filesOf(script, cwd, around)
  const change = resolve(cwd) === resolve(around.cwd) ? undefined : `cd '${cwd.replaceAll("'", "'\\''")}'`
  const subject = change === undefined ? line : `${change} && ${line}`
  const nodes = script.errors?.length ? [] : leavesOf(script)
  const parts: RulePart[] = []
  let uncertain = false
  const add = (node: SyntaxNode, pieces: readonly Piece[]) => {
    const commands = new CommandsIn(parse)
    commands.visit(node)
    uncertain ||= commands.uncertain
    const whole = parts.length > 0 ? undefined : (pattern: string) => matchText(pattern, line) || matchText(pattern, subject)
    parts.push({
      covers: coverage(pieces, subject),
      names: pattern => commands.names(pattern) || whole?.(pattern) === true,
      suspects: pattern => commands.suspects(pattern)
    })
  }
  for (const node of nodes) {
    const others = yieldToLoop() // a line may have thousands of commands
    if (others) await others
    add(node, piecesOf(node, line, files))
  }
  if (nodes.length === 0) add(script, [{ text: line, spelled: true }])
  if (change !== undefined) add(parse(change), [{ text: change, spelled: false }])
  return { approval_argument: subject, parts, uncertain, accesses: files.accesses }
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
