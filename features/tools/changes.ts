/** What guards and the authority made of the arguments of one call. Each changes them at most once, so that there is an end. */
import { headOf } from '../../kernel/index.ts'
import { asData } from '../history/index.ts'
import type { ToolRewrite } from './service.ts'

/** Characters of changed arguments that the model is told. */
const SHOWN = 2_000

export class Changes {
  #args: Readonly<Record<string, unknown>>
  readonly #sources = new Set<unknown>()
  readonly #names: string[] = []
  readonly #reasons: string[] = []

  constructor(args: Readonly<Record<string, unknown>>) {
    this.#args = args
  }

  /** The arguments as they are now. */
  get args(): Readonly<Record<string, unknown>> {
    return this.#args
  }

  /** Names of those who changed them, in order. */
  get by(): readonly string[] {
    return this.#names
  }

  /** What the model is told; empty when nothing was changed. */
  get text(): string {
    if (this.#names.length === 0) return ''
    const shown = asData(headOf(JSON.stringify(this.#args) ?? 'nothing', SHOWN))
    return [`The arguments of this call were changed by ${this.#names.join(', ')} to ${shown}.`, ...this.#reasons].join(' ')
  }

  /** False when the source has changed them before: nothing happens then. */
  add(source: unknown, name: string, { args, reason }: ToolRewrite): boolean {
    if (this.#sources.has(source)) return false
    this.#sources.add(source)
    this.#names.push(name)
    if (reason !== undefined) this.#reasons.push(reason)
    this.#args = args
    return true
  }
}
