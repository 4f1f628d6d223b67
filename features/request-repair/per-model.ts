/** What was found out about the servers of models, until this one ends. */
import type { LlmRequest } from '../llm/index.ts'

const REMEMBERED_MODELS = 256

/** Findings about models, each once; the model that was learned of first is forgotten first. */
export class PerModel<T> {
  readonly #known = new Map<string, readonly T[]>()

  of(request: LlmRequest): readonly T[] {
    return this.#known.get(key(request)) ?? []
  }

  /** False: it was known. */
  add(request: LlmRequest, found: T): boolean {
    const before = this.of(request)
    if (before.includes(found)) return false
    if (this.#known.size >= REMEMBERED_MODELS) this.#known.delete(this.#known.keys().next().value ?? '')
    this.#known.set(key(request), [...before, found])
    return true
  }
}

const key = ({ model: { base_url, protocol, name } }: LlmRequest) => JSON.stringify([base_url, protocol, name])
