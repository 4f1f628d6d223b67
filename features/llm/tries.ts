/** A stream of parts that is begun anew as long as nothing but an error came and another try may end better. */
import type { LlmError, LlmPart } from './request.ts'

/** The stream of the next try, after this error of the one before; undefined: the error stands. Must not reject. */
type NextTry = (refused: LlmError | undefined) => AsyncIterable<LlmPart> | undefined | Promise<AsyncIterable<LlmPart> | undefined>

/** Asked for one part at a time. What follows the first part passes on as it comes, without a step in between. */
export class Tries implements AsyncIterableIterator<LlmPart> {
  readonly #ask: NextTry
  #parts: AsyncIterator<LlmPart> | undefined
  /** A part came that stays. */
  #begun = false

  constructor(ask: NextTry) {
    this.#ask = ask
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<LlmPart>> {
    return this.#begun && this.#parts ? this.#parts.next() : this.#first()
  }

  async return(): Promise<IteratorResult<LlmPart>> {
    await this.#parts?.return?.()
    return { done: true, value: undefined }
  }

  async #first(): Promise<IteratorResult<LlmPart>> {
    let step: IteratorResult<LlmPart> = { done: true, value: undefined }
    let next = await this.#ask(undefined)
    while (next) {
      await this.#parts?.return?.()
      this.#parts = next[Symbol.asyncIterator]()
      step = await this.#parts.next()
      next = !step.done && step.value.type === 'error' ? await this.#ask(step.value.error) : undefined
    }
    this.#begun = true
    return step
  }
}

/** A stream of parts that are there already. */
export async function* streamOf(...parts: readonly LlmPart[]): AsyncGenerator<LlmPart, void, undefined> {
  yield* parts
}
