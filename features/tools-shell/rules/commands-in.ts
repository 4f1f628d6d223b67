/** The wide reading of a line: every command that it may run, in the forms in which a rule may name it. Better one too many than one missed. */
import type { Assignment, Command } from 'unbash'
import type { Call } from './call.ts'
import { lookAt } from './calls.ts'
import { Findings, runsWithin, suspicion } from './findings.ts'
import { isProgramVariable } from './programs.ts'
import type { Found } from './tree.ts'
import type { Values } from './values.ts'
import { baseOf, isForeign, literal } from './words.ts'

/** The commands below a node. `plain`: a shell reads it that need not be bash. */
export async function commandsIn(root: Found, values: Values, plain: boolean): Promise<Findings> {
  return await new Findings(values, plain, visit).lookInto(root)
}

function visit({ node, call, children }: Found, found: Findings): void {
  if ('errors' in node && node.errors?.length) found.doubt()
  if (found.place.plain && isForeign(node)) found.doubt()
  switch (node.type) {
    case 'Command':
      command(node, call, found)
      break
    case 'Assignment':
      assigned(node, found)
      break
    case 'ArithmeticWord':
      if (runsWithin.test(node.value)) found.text(node.value.replace(/['"]/g, ''))
      break
    case 'ParameterExpansion':
      found.computed(node.index)
      if (node.operation?.type === 'Slice') for (const word of [node.operation.offset, node.operation.length]) found.computed(word)
      break
    case 'TestUnary':
      found.computed(node.operand)
      break
    case 'TestBinary':
      for (const word of [node.left, node.right]) found.computed(word)
      break
    case 'ArithmeticCommand':
      if (found.place.plain) found.text(node.body) // two groups in each other
  }
  // what is put there last is looked at first: in the order of the text
  for (let at = children.length - 1; at >= 0; at--) found.visit(children[at]!)
}

function command(node: Command, call: Call | undefined, found: Findings): void {
  for (const each of node.prefix) {
    const text = each.type === 'Assignment' && each.value.type === 'Word' ? literal(each.value) : undefined
    if (text !== undefined && node.name) found.guess(text) // PAGER='rm x' man ls
  }
  if (!node.name) return
  found.add([node.name, ...node.args].map(each => each.text).join(' '))
  if (call) lookAt(call, found)
  else found.uncertain = true
}

/** What the shell runs when it uses the variable, and what programs run that get it from their environment. */
function assigned({ name, index, value }: Assignment, found: Findings): void {
  found.computed(index)
  for (const word of value.type === 'Word' ? [value] : value.elements) {
    found.computed(word)
    const text = literal(word)
    const runs = /^(?:BASH_ALIASES|BASH_CMDS|PROMPT_COMMAND|PS\d)/.test(name)
    if (runs && text !== undefined) found.text(text.replace(/^\[[^\]]*\]=/, ''))
    else if (text === undefined && (runs || isProgramVariable(name))) found.text(word.value)
    else if (text !== undefined && (/^[A-Z]/.test(name) || isProgramVariable(name))) {
      found.guess(text)
      if (isProgramVariable(name)) found.later(() => found.program(text), suspicion)
      found.suspect(baseOf(text))
    }
  }
}
