/** Numbers of sessions that nobody watches at the moment: they go on for who comes after everybody has gone. */

/** Whoever watches a session again is back within seconds. */
const maxSessions = 1000

export class NewestFrames {
  readonly #numbers = new Map<string, number>()

  get size(): number {
    return this.#numbers.size
  }

  /** The number of the newest frame of a session, or 0; from now on its watchers know it. */
  take(session_id: string): number {
    const seq = this.#numbers.get(session_id) ?? 0
    this.#numbers.delete(session_id)
    return seq
  }

  /** The last watcher has gone. */
  keep(session_id: string, seq: number): void {
    if (seq > 0) this.#numbers.set(session_id, seq)
    const [oldest = ''] = this.#numbers.keys()
    if (this.#numbers.size > maxSessions) this.#numbers.delete(oldest)
  }
}
