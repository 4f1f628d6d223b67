/** Counts failed authentications per peer address and bans (contract 1, Authentication rule 6). */

/** Failures within any window that start a ban. */
const maxFailures = 10
/** Length of a window and of a ban, ms. */
const windowMs = 60_000
const banMs = 60_000

interface Entry {
  /** Instants of those that count, oldest first. */
  failures: number[]
  bannedUntil: number
}

/** As if nothing had been. */
const isOver = ({ failures, bannedUntil }: Entry, now: number): boolean =>
  now >= bannedUntil && now - (failures.at(-1) ?? Number.NEGATIVE_INFINITY) > windowMs

/** Time is passed in (ms), so there is no timer to leak; stale entries leave while failures are counted. */
export class BanTable {
  readonly #entries = new Map<string, Entry>()
  readonly #capacity: number
  #sweptAt = Number.NEGATIVE_INFINITY

  /** `capacity`: addresses remembered at once; the oldest one that is not banned leaves first. */
  constructor(capacity = 10_000) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#entries.size
  }

  banned(address: string, now: number): boolean {
    const entry = this.#entries.get(address)
    return entry !== undefined && now < entry.bannedUntil
  }

  /** A success never resets the count. */
  fail(address: string, now: number): void {
    this.#sweep(now)
    let entry = this.#entries.get(address)
    if (!entry || isOver(entry, now)) {
      this.#entries.delete(address)
      this.#makeRoom()
      entry = { failures: [], bannedUntil: 0 }
      this.#entries.set(address, entry)
    }
    entry.failures = [...entry.failures.filter(at => now - at <= windowMs), now]
    if (entry.failures.length < maxFailures) return
    entry.bannedUntil = now + banMs
    entry.failures = []
  }

  clear(): void {
    this.#entries.clear()
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < windowMs) return
    this.#sweptAt = now
    for (const [address, entry] of this.#entries) {
      if (isOver(entry, now)) this.#entries.delete(address)
    }
  }

  #makeRoom(): void {
    if (this.#entries.size < this.#capacity) return
    for (const [address, entry] of this.#entries) {
      if (entry.bannedUntil > 0) continue
      this.#entries.delete(address)
      return
    }
    const oldest = this.#entries.keys().next().value
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}
