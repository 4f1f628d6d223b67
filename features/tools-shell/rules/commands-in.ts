/** The wide reading of a line: every command that it may run, in the forms in which a rule may name it. Better one too many than one missed. */
import type { Assignment, Command, SyntaxNode } from 'unbash'
import { lookAt } from './calls.ts'
import { isInput, isNothing } from './files-in.ts'
import { Findings, type Place, suspicion } from './findings.ts'
import { isProgramVariable } from './settings.ts'
import { childrenOf, type Values } from './survey.ts'
import { baseOf, isForeign, literal, unquoted, WORDS } from './words.ts'

/** Collects the commands below a node. */
export class CommandsIn extends Findings {
  static async below(node: SyntaxNode, values: Values, place: Pick<Place, 'plain' | 'fed'>): Promise<CommandsIn> {
    const commands = new CommandsIn(values, place)
    commands.later(() => commands.visit(node))
    await commands.finish()
    return commands
  }

  visit(node: SyntaxNode): void {
    if ('errors' in node && node.errors?.length) this.doubt()
    if (this.place.plain && isForeign(node)) this.doubt()
    switch (node.type) {
      case 'Command':
        this.#command(node)
        break
      case 'Assignment':
        this.#assigned(node)
        break
      case 'TestUnary':
        this.computed(node.operand)
        break
      case 'TestBinary':
        for (const word of [node.left, node.right]) this.computed(word)
        break
      case 'ArithmeticCommand':
        if (this.place.plain) this.text(node.body) // two groups in each other
    }
    // what is put there last is looked at first: in the order of the text
    for (const child of childrenOf(node).reverse()) this.later(() => this.visit(child), feeds(node, child) ? { fed: true } : undefined)
  }

  #command(command: Command): void {
    for (const each of command.prefix) {
      const text = each.type === 'Assignment' && each.value.type === 'Word' ? literal(each.value) : undefined
      if (text !== undefined && command.name) this.guess(text) // PAGER='rm x' man ls
    }
    if (!command.name) return
    const words = [command.name, ...command.args.map(each => (each.type === 'Word' ? each : undefined))]
    const values = [command.name.value, ...command.args.map(each => (each.type === 'Word' ? each.value : unquoted(each.text)))]
    this.add([command.name, ...command.args].map(each => each.text).join(' '))
    if (values.length <= WORDS) lookAt({ command, words, values }, this)
    else this.uncertain = true
  }

  /** What the shell runs when it uses the variable, and what programs run that get it from their environment. */
  #assigned({ name, value }: Assignment): void {
    for (const word of value.type === 'Word' ? [value] : value.elements) {
      this.computed(word)
      const text = literal(word)
      const runs = /^(?:BASH_ALIASES|BASH_CMDS|PROMPT_COMMAND|PS\d)/.test(name)
      if (runs && text !== undefined) this.text(text.replace(/^\[[^\]]*\]=/, ''))
      else if (text === undefined && (runs || isProgramVariable(name))) this.text(word.value)
      else if (text !== undefined && (/^[A-Z]/.test(name) || isProgramVariable(name))) {
        this.guess(text)
        if (isProgramVariable(name)) this.later(() => this.program(text), suspicion)
        this.suspect(baseOf(text))
      }
    }
  }
}

/** Whether commands below the node get their input from elsewhere: a pipe, a file, whoever calls a function. */
function feeds(node: SyntaxNode, child: SyntaxNode): boolean {
  switch (node.type) {
    case 'Pipeline':
      return child !== node.commands[0]
    case 'Redirected':
      return child === node.command && node.redirects.some(each => isInput(each) && !isNothing(each))
    case 'ProcessSubstitution':
      return node.operator === '>'
    default:
      return node.type === 'Function' || node.type === 'Coproc'
  }
}
