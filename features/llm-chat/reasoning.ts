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
}

/** The reasoning of one response. */
export class Reasoning {
  /** The field that carried reasoning in this response. */
  key: string | undefined
  readonly #model: string
  readonly #keys: readonly string[]
  /** Reasoning has begun and is not sealed; for `reasoning_details` with the entry so far. */
  #open: { entry?: Delta } | undefined

  constructor({ model, configured, known }: ReasoningOptions) {
    this.#model = model
    this.#keys = configured !== undefined ? [configured] : [...(known === undefined ? [] : [known]), ...usualKeys]
  }

  feed(delta: Delta, parts: LlmPart[]): void {
    this.key ??= this.#keys.find(key => listOf(delta[key]).length > 0 || stringOf(delta[key]) !== '')
    if (this.key === undefined) return
    const value = delta[this.key]
    if (Array.isArray(value)) for (const entry of value) this.#detail(recordOf(entry), parts)
    else this.#say(stringOf(value), parts)
  }

  /** The answer or a call begins, or the response ends. */
  close(parts: LlmPart[]): void {
    if (this.#open === undefined || this.key === undefined) return
    const { entry } = this.#open
    this.#open = undefined
    parts.push({ type: 'thinking', text: '', signature: writeReplayData({ model: this.#model, key: this.key, ...(entry && { entry }) }) })
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
