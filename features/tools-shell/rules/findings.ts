/** What the wide reading found so far, what is left to look at, and how texts are looked into. */
import { parse, type Word } from 'unbash'
import { yieldToLoop } from '../../../kernel/index.ts'
import { compileText } from '../../tools/index.ts'
import { type Found, foundOf, walk } from './tree.ts'
import type { Values } from './values.ts'
import { literal } from './words.ts'

/** Scripts within the words of scripts that are looked into. */
const DEPTH = 5
/** Characters of all forms together; a line with more is not taken apart to the end. */
const BUDGET = 300_000
/** In a form: a first word that only the running shell knows, and one that may come out as several, flags among them. */
export const DYNAMIC = '\0'
export const EXPANDING = '\x01'

/** Where something stands. */
interface Place {
  /** What is found may be commands, but need not. */
  readonly suspected: boolean
  /** Text here that cannot be understood makes the whole line uncertain. */
  readonly counts: boolean
  /** A shell reads it that need not be bash. */
  readonly plain: boolean
  /** Its commands get their input from elsewhere. */
  readonly fed: boolean
  /** How many scripts it is nested in. */
  readonly depth: number
}

/** In a text that the shell computes with: a command. */
export const runsWithin = /\$\(|`/

/** What is found may be a command; text that cannot be understood does not make the line uncertain. */
export const suspicion = { suspected: true, counts: false }

export class Findings {
  /** Every command as written, without quotes, and without the directory of its program. */
  readonly #forms = new Set<string>()
  /** What may be a command of a program that nothing is known of. */
  readonly #suspected = new Set<string>()
  /** Something runs whose name the line does not tell: a variable, a pattern, a script from elsewhere, text that could not be understood. */
  uncertain = false
  readonly values: Values
  readonly #visit: (found: Found, all: Findings) => void
  readonly #todo: { readonly look: () => void; readonly place: Place }[] = []
  /** Scripts whose variables are not known yet. */
  #fresh: Found[] = []
  /** The place of what is looked at now. */
  place: Place
  #budget = BUDGET

  /** `plain`: a shell reads the line that need not be bash. `visit` looks at one node. */
  constructor(values: Values, plain: boolean, visit: (found: Found, all: Findings) => void) {
    this.values = values
    this.#visit = visit
    this.place = { plain, suspected: false, counts: true, fed: false, depth: 0 }
  }

  /** There is room for more. */
  get goesOn(): boolean {
    return this.#budget >= 0
  }

  /** Whether one of them is what a rule means. */
  names(pattern: string): boolean {
    return anyMeans(pattern, this.#forms)
  }

  /** Whether one of them may be. */
  suspects(pattern: string): boolean {
    const [, flag, subcommand = DYNAMIC] = /^\S+ (?:(-[\w-]+)|(\w[\w-]*))/.exec(pattern) ?? []
    return anyMeans(
      pattern,
      [...this.#suspected].map(form => form.replace(DYNAMIC, subcommand).replace(EXPANDING, flag ?? EXPANDING))
    )
  }

  /** Looks at the node and all that comes of it; yields to the loop in between. */
  async lookInto(root: Found): Promise<this> {
    this.visit(root)
    for (let next = this.#todo.pop(); next && this.goesOn; next = this.#todo.pop()) {
      this.place = next.place
      next.look()
      const fresh = this.#fresh
      this.#fresh = []
      for (const script of fresh) await walk(script, node => this.values.learn(node))
      const others = yieldToLoop()
      if (others) await others
    }
    if (!this.goesOn) this.uncertain = true
    return this
  }

  /** Looks at a node in a while, at the place that is looked at now, or one that differs. */
  visit(found: Found, change: Partial<Place> = {}): void {
    this.later(() => this.#visit(found, this), { ...change, fed: found.fed })
  }

  /** Looks at it in a while, at the place that is looked at now, or one that differs. */
  later(look: () => void, change?: Partial<Place>): void {
    this.#todo.push({ look, place: change ? { ...this.place, ...change } : this.place })
  }

  /** What stands here cannot be understood. */
  doubt(): void {
    if (this.place.counts) this.uncertain = true
  }

  /** Words that the shell computes with run what stands in `$(...)`, also within quotes. */
  computed(word: Word | undefined): void {
    const text = word && literal(word)
    if (text !== undefined && runsWithin.test(text)) this.text(text)
  }

  /** The text of a program in another language: whatever may begin a command in it counts as one. */
  program(text: string): void {
    this.#budget -= text.length
    if (text === '') return
    if (/\bsystem\s*(?:\(\s*)?[$@\w]/.test(text)) this.doubt()
    for (const piece of text.split(/["'`/|;&:{}()[\]!,=\n]/)) {
      const form = piece.trim().replace(/^-\w(?=\w+ )|^[-@+]*[@+]|^(?:[\d$,]*e|exec|\.?shell|\.s[hy]\w*|spawn|system|\w+Command)\s+/, '')
      if (form === '' || !this.goesOn) continue
      this.add(form)
      this.guess(form)
    }
  }

  /** A word that may hold the text of a command: as it is, after `--flag=`, after `-f`. That it cannot be understood means nothing. */
  guess(value: string): void {
    if (!/[\s;&|<>()`$]/.test(value)) return
    const guess = { counts: false, plain: true }
    this.text(value.replace(/^\+?(?:!|\|{1,2}-?)\s*/, ''), guess)
    if (/^-\w/.test(value)) this.text(value.slice(2), guess)
    if (/^-\w*c/.test(value)) this.text(value.replace(/^-\w*?c/, ''), guess)
    if (/^[\w.-]+=/.test(value)) this.text(value.slice(value.indexOf('=') + 1), guess)
  }

  /** The text of a script. */
  text(text: string, change: Partial<Place> = {}): void {
    const { depth } = this.place
    this.#budget -= text.length
    if (!this.goesOn) return
    if (depth >= DEPTH) {
      this.doubt()
      return
    }
    const script = foundOf(parse(text), this.place.fed)
    this.#fresh.push(script)
    this.visit(script, { ...change, depth: depth + 1 })
  }

  /** What may be a command. */
  suspect(form: string): void {
    this.later(() => this.add(form), suspicion)
  }

  /** A command, with its words. */
  add(form: string): void {
    this.#budget -= form.length
    if (this.goesOn) (this.place.suspected ? this.#suspected : this.#forms).add(form)
  }
}

/** `rm *` means `rm` without arguments, too: they may come from elsewhere (xargs). */
function anyMeans(pattern: string, forms: Iterable<string>): boolean {
  const fits = compileText(pattern)
  for (const form of forms) if (fits(form) || fits(`${form} `)) return true
  return false
}
