/**
 * Several writes can get on disk at once, and who wrote them takes some promises to tell them, one more than another: their events are told in
 * the order of the writes all the same.
 */

/** One write. `first` is called when it becomes the first that has not begun to be told. */
interface Turn {
  first?: () => void
}

export class TellingOrder {
  /** Writes whose events have not begun to be told, in order. */
  readonly #silent = new Set<Turn>()

  begin(): Turn {
    const turn: Turn = {}
    this.#silent.add(turn)
    return turn
  }

  isFirst(turn: Turn): boolean {
    return this.#silent.values().next().value === turn
  }

  /** Waits until those before it have begun to be told, but not beyond the pass of the loop in which they had to. */
  async untilFirst(turn: Turn): Promise<void> {
    const pass = new Promise<void>(resolve => setImmediate(resolve))
    const first = new Promise<void>(resolve => {
      turn.first = resolve
    })
    await Promise.race([pass, first])
    for (const before of this.#silent) {
      if (before === turn) break
      this.#silent.delete(before)
    }
  }

  /** It begins to be told, or never will be. */
  speak(turn: Turn): void {
    if (!this.#silent.delete(turn)) return
    const [next] = this.#silent
    next?.first?.()
  }
}
