/** Prompts that wait: first in, first out; steered ones leave early and return to their old place when the turn ended first. */
import type { Origin } from '../history/index.ts'
import type { Prompt, PromptOutcome } from './service.ts'

export interface QueuedPrompt {
  readonly prompt_id: string
  readonly content: Prompt['content']
  readonly created_at: string
  readonly origin: Origin
  /** Hears whether its turn began, where packs were asked first. */
  readonly launched?: (status: Prompt['status']) => void
  /** Hears how it ended. */
  readonly settled?: (outcome: Omit<PromptOutcome, 'prompt_id'>) => void
}

interface Place {
  readonly order: number
  readonly item: QueuedPrompt
}

export class PromptQueue {
  #places: Place[] = []
  #next = 0
  /** Places of prompts that left, so that `restore` finds them. */
  readonly #left = new Map<string, number>()

  get length(): number {
    return this.#places.length
  }

  items(): readonly QueuedPrompt[] {
    return this.#places.map(place => place.item)
  }

  has(prompt_id: string): boolean {
    return this.#places.some(place => place.item.prompt_id === prompt_id)
  }

  push(item: QueuedPrompt): void {
    this.#places.push({ order: this.#next++, item })
  }

  shift(): QueuedPrompt | undefined {
    return this.#places.shift()?.item
  }

  /** Takes these prompts out, in queue order. */
  take(prompt_ids: readonly string[]): QueuedPrompt[] {
    const taken = this.#places.filter(place => prompt_ids.includes(place.item.prompt_id))
    this.#places = this.#places.filter(place => !taken.includes(place))
    for (const place of taken) this.#left.set(place.item.prompt_id, place.order)
    return taken.map(place => place.item)
  }

  /** Puts taken prompts back at their old places. */
  restore(items: readonly QueuedPrompt[]): void {
    for (const item of items) this.#places.push({ order: this.#left.get(item.prompt_id) ?? this.#next++, item })
    this.#places.sort((a, b) => a.order - b.order)
    this.forget(items.map(item => item.prompt_id))
  }

  /** The taken prompts will not come back. */
  forget(prompt_ids: readonly string[]): void {
    for (const id of prompt_ids) this.#left.delete(id)
  }
}
