/** Which directories a line may be in, as far as its `cd` says. */
import { dirname, join } from 'node:path'
import type { SyntaxNode } from 'unbash'
import { homeOfUser, lookAt } from '../../../kernel/index.ts'
import { absolutePath } from '../../tools/index.ts'
import type { Call } from './call.ts'
import { Texts } from './texts.ts'
import type { Found } from './tree.ts'
import type { Values } from './values.ts'

/** Directories that a line may go to. */
const DIRS = 10

/** What begins again from an earlier directory, or may have failed half-way, where it ends. */
interface Scope {
  readonly end: number
  readonly before: Iterable<string>
  readonly isShell: boolean
}

export class Directories {
  /** All that the line may ever be in, or come back to. */
  readonly all: Set<string>
  /** Where it may be at the node that was met last. */
  now: Iterable<string>
  /** It goes to another directory. */
  moves = false
  /** It goes to more than are looked at: it may be anywhere. */
  tooMany = false
  /** Where it may have been so far. */
  readonly #been: Set<string>
  readonly #home: string
  /** What words are while not all of the line was met. */
  readonly texts: Texts
  readonly #scopes: Scope[] = []
  /** Commands without which what follows does not run. */
  readonly #needed = new Set<SyntaxNode>()
  /** Its commands run in another order than they stand there. */
  #jumps = false

  constructor(cwd: string, home: string, values: Values) {
    this.all = new Set([cwd])
    this.now = [cwd]
    this.#been = new Set(this.now)
    this.#home = home
    this.texts = new Texts(values, this.all)
  }

  /** Met in the order of the text. */
  async meet({ node, call }: Pick<Found, 'node' | 'call'>): Promise<void> {
    for (let scope = this.#scopes.at(-1); scope && 'pos' in node && node.pos >= scope.end; scope = this.#scopes.at(-1)) {
      this.now = scope.isShell ? scope.before : [...new Set([...scope.before, ...this.now])]
      this.#scopes.pop()
    }
    const { now: before } = this
    switch (node.type) {
      case 'Subshell':
      case 'CommandExpansion':
      case 'ProcessSubstitution':
      case 'Pipeline':
        if (node.type !== 'Pipeline' || node.commands.length > 1) this.#scopes.push({ end: node.end, before, isShell: true })
        break
      case 'AndOr':
        this.#scopes.push({ end: node.end, before, isShell: false })
        for (const [at, command] of node.commands.entries()) if (node.operators[at] === '&&') this.#needed.add(command)
        break
      case 'ArithmeticFor':
      case 'For':
      case 'Function':
      case 'Select':
      case 'While':
        this.#jumps = true
        break
    }
    const going = call && goingIn(call)
    if (going) await this.#go(going)
    if (this.#jumps) this.now = this.#been // also what is met later
  }

  /** What is met next may run wherever the line has been. */
  scatter(): void {
    this.now = [...this.#been]
    this.#scopes.length = 0
  }

  async #go({ command, values, words }: Call): Promise<void> {
    this.moves = true
    if (this.tooMany) return
    for (const dir of [homeOfUser(), process.env.OLDPWD ?? '']) if (dir !== '') this.all.add(dir) // `cd`, `cd -`
    const rest = words.slice(1).filter((_, at) => !/^-[LPe@n]+$|^--$/.test(values[at + 1]!))
    for (const word of rest) {
      const texts = word && this.texts.of(word)
      const next = new Set<string>()
      for (const text of texts ?? ['.'])
        for (const from of this.now) {
          const to = this.#target(text, from)
          next.add(to)
          // where no directory is, nobody gets to: what follows runs where the line was before
          if (!this.#needed.has(command) && !(await lookAt(to))?.isDirectory()) next.add(from)
        }
      this.now = [...next]
    }
    if (rest.length === 0 && values[0] !== 'popd') this.now = [homeOfUser()]
    if (values[0] === 'popd' || values.includes('-')) this.now = [...this.#been, ...this.now]
    for (const dir of this.now) {
      if (this.all.size < DIRS) this.all.add(dir)
      else if (!this.all.has(dir)) this.tooMany = true
    }
    this.now = [...new Set(this.now)].slice(0, DIRS)
    for (const dir of this.now) this.#been.add(dir)
  }

  #target(text: string, from: string): string {
    if (text === '-' || text === '~-') return process.env.OLDPWD ?? from
    const user = /^~[^/+-][^/]*(.*)/s.exec(text)
    return user ? join(dirname(this.#home), user[1]!) : absolutePath(withoutDetours(text, from), from)
  }
}

/** The call that goes to another directory, also behind `builtin` and `command`. */
export function goingIn(call: Call): Call | undefined {
  return call.chain.find(each => /^(?:cd|pushd|popd)$/.test(each.call.values[0]!))?.call
}

/** Without names that lead to a directory which has another one. */
export function withoutDetours(text: string, base: string): string {
  return text
    .replace(/^\/dev\/fd(?=\/)/, '/proc/self/fd')
    .replace(/^(\/proc\/[^/]+)(?:\/+(?:fd\/+\.\.|\.|task\/+[^/]+))*(?=\/)/, '$1')
    .replace(/^\/proc\/[^/]+\/+(?:root(?=\/|$)|(cwd)(?=\/|$))/, (_, isCwd) => (isCwd ? base : ''))
    .replace(/^~\+(?=\/|$)/, base)
}
