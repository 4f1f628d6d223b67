/** The files that a line names: those of its redirections, and words that lead to files of the server itself. */
import type { Redirect, SyntaxNode } from 'unbash'
import { realAt, yieldToLoop } from '../../../kernel/index.ts'
import { absolutePath, type FileAccess, isInside, type Surroundings, withoutLinks } from '../../tools/index.ts'
import { ownWords } from './own-words.ts'
import { isHarmless, kindsOf } from './redirects.ts'
import type { Found } from './tree.ts'
import type { Values } from './values.ts'
import { literal } from './words.ts'

export interface Files {
  /** Words that name the server's own files. */
  readonly own: ReadonlyMap<SyntaxNode, FileAccess>
  /** Those of redirections whose target the line tells, then its own. */
  readonly accesses: readonly FileAccess[]
  /** The line goes to another directory. */
  readonly moves: boolean
  /** Whether the redirection reads a file below the directory that the line runs in, and from nothing else. */
  mayRead(node: Redirect): boolean
}

/** Of a line that runs in `cwd`: its tree, and those of texts on it that shells read, both in the order of the text. */
export async function filesOf(
  [line, texts]: readonly [readonly Found[], readonly Found[]],
  cwd: string,
  given: Surroundings,
  values: Values
): Promise<Files> {
  const { own, moves } = await ownWords(line, texts, cwd, given, values)
  const accesses = new Map<string, FileAccess>()
  const known = new Map<Redirect, string>()
  for (const { node } of line) {
    if (node.type !== 'Redirect' || isHarmless(node)) continue
    const others = yieldToLoop()
    if (others) await others
    const target = node.target && literal(node.target)
    if (target === undefined || /^~[^/]/.test(target)) continue
    const path = absolutePath(target, cwd)
    const real = (await realAt(path)) ?? path // absent: its name is all there is
    known.set(node, real)
    for (const kind of kindsOf(node)) accesses.set(`${kind} ${real}`, { kind, path: real })
  }
  const root = await withoutLinks(cwd)
  return {
    accesses: [...accesses.values(), ...own.values()],
    own,
    moves,
    mayRead(node) {
      const path = known.get(node)
      return path !== undefined && !moves && isInside(path, root)
    }
  }
}
