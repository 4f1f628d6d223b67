/** Reasoning on its way in: which field carries it, and what must go back with it. */
import { type LlmPart, listOf, recordOf, stringOf } from '../llm/index.ts'
import { writeReplayData } from './replay-data.ts'

const usualKeys = ['reasoning_content', 'reasoning_details', 'reasoning'] as const
type Delta = Readonly<Record<string, unknown>>

/** Where reasoning is looked for. */
export interface ReasoningOptions {
  /** Upstream name of the model. */
  readonly model: string
  /** Field that the model record names; then no other counts. */
  readonly configured?: string | undefined
  /** Field of an earlier response; looked at first. */
  readonly known?: string | undefined
  /** Hears once of another field than the known one that carries it. */
  readonly learned?: (key: string) => void
}

/** The reasoning of one response. */
export class Reasoning {
  readonly #keys: readonly string[]
  readonly #options: ReasoningOptions
  /** The field that carries reasoning in this response. */
  #key: string | undefined
  /** Reasoning has begun and is not sealed; for `reasoning_details` with the entry so far. */
  #open: { entry?: Delta } | undefined

  constructor(options: ReasoningOptions) {
    const { configured, known } = options
    this.#options = options
    this.#keys = configured !== undefined ? [configured] : [...(known === undefined ? [] : [known]), ...usualKeys]
  }

  feed(delta: Delta, parts: LlmPart[]): void {
    this.#key ??= this.#find(delta)
    if (this.#key === undefined) return
    const value = delta[this.#key]
    if (Array.isArray(value)) for (const entry of value) this.#detail(recordOf(entry), parts)
    else this.#say(stringOf(value), parts)
  }

  #find(delta: Delta): string | undefined {
    const { known, learned } = this.#options
    const key = this.#keys.find(one => listOf(delta[one]).length > 0 || stringOf(delta[one]) !== '')
    if (key !== undefined && key !== known) learned?.(key)
    return key
  }

  /** The answer or a call begins, or the response ends. */
  close(parts: LlmPart[]): void {
    if (this.#open === undefined || this.#key === undefined) return
    const { entry } = this.#open
    this.#open = undefined
    parts.push({
      type: 'thinking',
      text: '',
      signature: writeReplayData({ model: this.#options.model, key: this.#key, ...(entry && { entry }) })
    })
  }

  #say(text: string, parts: LlmPart[]): void {
    if (text === '') return
    this.#open ??= {}
    parts.push({ type: 'thinking', text })
  }

  /** Pieces of one entry have its type and number; what is null in one may be told in another. */
  #detail({ text, summary, ...fields }: Delta, parts: LlmPart[]): void {
    const told = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))
    const open = this.#open?.entry
    const same = open && (told.type ?? open.type) === open.type && (told.index ?? open.index) === open.index
    if (!same) this.close(parts)
    this.#open = { entry: { ...(same && open), ...told } }
    this.#say(stringOf(text) || stringOf(summary), parts)
  }
}
