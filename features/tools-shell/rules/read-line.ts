/**
 * One reading of a command line for all permission rules, from its syntax tree. Allowing is read narrowly (`pieces.ts`), denying and asking
 * widely (`commands-in.ts`).
 */
import { resolve } from 'node:path'
import { type ParsedScript, parse, type SyntaxNode } from 'unbash'
import { matchText, type RulePart, type Surroundings, type ToolExecution } from '../../tools/index.ts'
import { CommandsIn } from './commands-in.ts'
import { filesOf, isHarmless, isInput } from './files-in.ts'
import { coverage, type Piece, piecesOf } from './pieces.ts'
import { Values, walk } from './survey.ts'
import { baseOf, isBash, isForeign, isPlain } from './words.ts'

/**
 * What rules judge of a call that runs a line. `approval_argument`: the line as rules see it, in another directory than the session's
 * `cd '<cwd>' && <line>`. `parts`: its simple commands, and what is no simple command as a whole. `uncertain`: it runs something that its text
 * does not name. `accesses`: files that redirections read and write, links resolved, and those of the server that words name.
 */
export type ReadLine = Required<Pick<ToolExecution, 'accesses' | 'approval_argument' | 'parts' | 'uncertain'>>

/** Where a line runs. */
export interface LinePlace {
  /** The shell that reads it: a path or a name. */
  readonly shell: string
  /** Absolute. */
  readonly cwd: string
  /** Of the agent that gives it. */
  readonly around: Surroundings
}

/** Longer lines are not taken apart, nor those with more commands. */
const READ_CHARS = 50_000
const COMMANDS = 1000

/** What will run there, before it does. */
export async function readLine(line: string, { shell, cwd, around }: LinePlace): Promise<ReadLine> {
  const script: ParsedScript = parse(line.length <= READ_CHARS ? line : '')
  const plain = !isBash(baseOf(shell))
  const values = new Values()
  const all: SyntaxNode[] = []
  let clear = line.length <= READ_CHARS && !script.errors?.length
  await walk(script, node => {
    all.push(node)
    values.learn(node)
    if (plain && isForeign(node)) clear = false
  })
  const files = await filesOf(all, cwd, around)
  // nobody knows what a line names that is not taken apart: it counts as touching what is the server's own
  const accesses = line.length <= READ_CHARS ? files.accesses : [{ kind: 'read' as const, path: around.home }]
  const change = resolve(cwd) === resolve(around.cwd) ? undefined : `cd '${cwd.replaceAll("'", "'\\''")}'`
  const subject = change === undefined ? line : `${change} && ${line}`
  const leaves = leavesOf(script)
  const parts: RulePart[] = []
  let uncertain = !clear || leaves.length > COMMANDS
  const add = async ({ node, fed }: Leaf, pieces: readonly Piece[]) => {
    const commands = await CommandsIn.below(node, values, { plain, fed })
    uncertain ||= commands.uncertain
    const whole = parts.length > 0 ? undefined : (pattern: string) => matchText(pattern, line) || matchText(pattern, subject)
    parts.push({
      covers: coverage(pieces, subject),
      names: pattern => commands.names(pattern) || whole?.(pattern) === true,
      suspects: pattern => commands.suspects(pattern)
    })
  }
  if (!uncertain) for (const leaf of leaves) await add(leaf, piecesOf(leaf.node, line, files, values))
  if (parts.length === 0) await add({ node: script, fed: false }, [{ text: line, spelled: true }])
  if (change !== undefined) await add({ node: parse(change), fed: false }, [{ text: change, spelled: false }])
  return { approval_argument: subject, parts, uncertain, accesses }
}

/** A command of the line, and whether it gets its input from another one. */
interface Leaf {
  readonly node: SyntaxNode
  readonly fed: boolean
}

/** The commands that lists, pipelines, groups and branches are made of. What assigns, defines or computes stays whole. */
function leavesOf(node: SyntaxNode, fed = false): Leaf[] {
  const all = (nodes: readonly SyntaxNode[]) => nodes.flatMap(each => leavesOf(each, fed))
  switch (node.type) {
    case 'Script':
    case 'CompoundList':
    case 'AndOr':
      return all(node.commands)
    case 'Pipeline':
      return node.commands.flatMap((each, at) => leavesOf(each, fed || at > 0))
    case 'Statement':
      return leavesOf(node.command, fed)
    case 'Subshell':
    case 'BraceGroup':
      return leavesOf(node.body, fed)
    case 'If':
      return all([node.clause, node.then, ...node.elif.flatMap(each => [each.clause, each.then]), ...(node.else ? [node.else] : [])])
    case 'While':
      return all([node.clause, node.body])
    case 'Case':
      if (![node.word, ...node.items.flatMap(item => item.pattern)].every(isPlain)) return [{ node, fed }]
      return all(node.items.map(item => item.body))
    case 'Redirected':
      return node.redirects.every(isHarmless) ? leavesOf(node.command, fed && !node.redirects.some(isInput)) : [{ node, fed }]
    default:
      return [{ node, fed }]
  }
}
