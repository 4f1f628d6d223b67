/** One walk over the tree of a text: its nodes, and where their input comes from. */
import { forEachChild, type SyntaxNode } from 'unbash'
import { yieldToLoop } from '../../../kernel/index.ts'
import { Call } from './call.ts'
import { isHarmless, isInput, isNothing } from './redirects.ts'
import { isPlain, WORDS } from './words.ts'

/** A node of a text. */
export interface Found {
  readonly node: SyntaxNode
  /** What the words of a command say. Undefined: there are none, or too many. */
  readonly call: Call | undefined
  /** Its commands get their input from elsewhere: a pipe, a file, whoever calls a function. */
  readonly fed: boolean
  /** In the order of the text; filled by the walk. */
  readonly children: Found[]
}

/** A node that was not walked yet. */
export function foundOf(node: SyntaxNode, fed: boolean): Found {
  const isCall = node.type === 'Command' && node.name && node.args.length < WORDS
  return { node, fed, call: isCall ? Call.of(node) : undefined, children: [] }
}

/** Looks at every node, in the order of the text; yields to the loop in between. */
export async function walk(root: Found, look: (node: SyntaxNode, found: Found) => void): Promise<void> {
  const todo = [root]
  for (let found = todo.pop(); found; found = todo.pop()) {
    const { node, fed, children } = found
    look(node, found)
    forEachChild(node, child => {
      children.push(foundOf(child, feeds(node, child) ?? fed))
    })
    for (let at = children.length - 1; at >= 0; at--) todo.push(children[at]!)
    const others = yieldToLoop()
    if (others) await others
  }
}

/** Whether the node gives its child an input from elsewhere; undefined: it changes nothing. */
function feeds(node: SyntaxNode, child: SyntaxNode): boolean | undefined {
  switch (node.type) {
    case 'Pipeline':
      return child === node.commands[0] ? undefined : true
    case 'Redirected': {
      if (child !== node.command || !node.redirects.some(isInput)) return undefined
      return node.redirects.some(each => isInput(each) && !isNothing(each))
    }
    case 'ProcessSubstitution':
      return node.operator === '>' ? true : undefined
    case 'Function':
    case 'Coproc':
      return true
    default:
      return undefined
  }
}

/** Nodes that are the sum of the commands in them. */
const sums = new Set('Script CompoundList AndOr Pipeline Statement Subshell BraceGroup If Elif While CaseItem'.split(' '))
/** What stands in these beside commands. */
const besides = new Set('Word Redirect Time Negation'.split(' '))

/** The commands that lists, pipelines, groups and branches are made of. What assigns, defines or computes stays whole. */
export function leavesOf(found: Found): Found[] {
  const { node, children } = found
  const isSum =
    node.type === 'Case'
      ? [node.word, ...node.items.flatMap(item => item.pattern)].every(isPlain)
      : node.type === 'Redirected'
        ? node.redirects.every(isHarmless)
        : sums.has(node.type)
  if (isSum) return children.flatMap(leavesOf)
  return besides.has(node.type) ? [] : [found]
}
