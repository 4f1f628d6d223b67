/**
 * One reading of a command line for all permission rules, from its syntax tree. Allowing is read narrowly (`pieces.ts`), denying and asking
 * widely (`commands-in.ts`).
 */
import { resolve } from 'node:path'
import { parse } from 'unbash'
import { matchText, type RulePart, type Surroundings, type ToolExecution } from '../../tools/index.ts'
import { commandsIn } from './commands-in.ts'
import { filesOf } from './files-in.ts'
import { coverage, type Piece, piecesOf } from './pieces.ts'
import { type Found, foundOf, leavesOf, walk } from './tree.ts'
import { Values } from './values.ts'
import { baseOf, isBash, isForeign } from './words.ts'

/**
 * What rules judge of a call that runs a line. `approval_argument`: the line as rules see it, in another directory than the session's
 * `cd '<cwd>' && <line>`. `parts`: its simple commands, and what is no simple command as a whole. `uncertain`: it runs something that its text
 * does not name. `accesses`: files that redirections read and write, links resolved, and those of the server that words name.
 */
type ReadLine = Required<Pick<ToolExecution, 'accesses' | 'approval_argument' | 'parts' | 'uncertain'>>

/** Where a line runs. */
interface LinePlace {
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

/** What the texts are made of that shells on the line read. */
async function scriptsIn(line: readonly Found[]): Promise<readonly Found[]> {
  const all: Found[] = []
  let room = READ_CHARS
  const look = async ({ call, fed }: Found) => {
    for (const { call: own } of call?.chain ?? [])
      for (const text of own.scripts) {
        room -= text.length
        if (room >= 0) await walk(foundOf(parse(text), fed), (_, found) => all.push(found))
      }
  }
  for (const found of line) await look(found)
  for (const found of all) await look(found) // texts in texts
  return all
}

/** What will run there, before it does. */
export async function readLine(line: string, { shell, cwd, around }: LinePlace): Promise<ReadLine> {
  const isLong = line.length > READ_CHARS
  const script = parse(isLong ? '' : line)
  const plain = !isBash(baseOf(shell))
  const root = foundOf(script, false)
  const values = new Values()
  const all: Found[] = []
  let uncertain = isLong || (script.errors?.length ?? 0) > 0
  await walk(root, (node, found) => {
    all.push(found)
    values.learn(node)
    if (plain && isForeign(node)) uncertain = true
  })
  const files = await filesOf([all, await scriptsIn(all)], cwd, around, values)
  // nobody knows what a line names that is not taken apart: it counts as touching what is the server's own
  const accesses = isLong ? [{ kind: 'read' as const, path: around.home }] : files.accesses
  const change = resolve(cwd) === resolve(around.cwd) ? undefined : `cd '${cwd.replaceAll("'", "'\\''")}'`
  const subject = change === undefined ? line : `${change} && ${line}`
  const leaves = leavesOf(root)
  uncertain ||= leaves.length > COMMANDS
  const parts: RulePart[] = []
  const add = async (found: Found, pieces: readonly Piece[]) => {
    const commands = await commandsIn(found, values, plain)
    uncertain ||= commands.uncertain
    const isFirst = parts.length === 0
    parts.push({
      covers: coverage(pieces, subject),
      names: pattern => commands.names(pattern) || (isFirst && (matchText(pattern, line) || matchText(pattern, subject))),
      suspects: pattern => commands.suspects(pattern)
    })
  }
  if (!uncertain) for (const leaf of leaves) await add(leaf, piecesOf(leaf, line, files, values))
  if (parts.length === 0) await add(root, [{ text: line, spelled: true }])
  if (change !== undefined) {
    const moved = foundOf(parse(change), false)
    await walk(moved, () => undefined)
    await add(moved, [{ text: change, spelled: false }])
  }
  return { approval_argument: subject, parts, uncertain, accesses }
}
