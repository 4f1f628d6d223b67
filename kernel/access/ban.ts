/** Counts failed authentications per peer address and bans (contract 1, Authentication rule 6). */

export interface BanOptions {
  /** Failures within the window that start a ban; default 10. */
  readonly failures?: number
  /** Length of the counting window, ms; default 60 s. It begins with the first failure. */
  readonly windowMs?: number
  /** Length of a ban, ms; default 60 s. */
  readonly banMs?: number
  /** Addresses remembered at once; the oldest one that is not banned leaves first. Default 10 000. */
  readonly capacity?: number
}

interface Entry {
  count: number
  since: number
  bannedUntil: number
}

/** Time is passed in (ms), so there is no timer to leak; stale entries leave while failures are counted. */
export class BanTable {
  readonly #entries = new Map<string, Entry>()
  readonly #failures: number
  readonly #windowMs: number
  readonly #banMs: number
  readonly #capacity: number
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(options: BanOptions = {}) {
    this.#failures = options.failures ?? 10
    this.#windowMs = options.windowMs ?? 60_000
    this.#banMs = options.banMs ?? 60_000
    this.#capacity = options.capacity ?? 10_000
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
    if (!entry || now - entry.since > this.#windowMs) {
      this.#entries.delete(address)
      this.#makeRoom()
      entry = { count: 0, since: now, bannedUntil: 0 }
      this.#entries.set(address, entry)
    }
    entry.count++
    if (entry.count < this.#failures) return
    entry.bannedUntil = now + this.#banMs
    entry.count = 0
  }

  clear(): void {
    this.#entries.clear()
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < this.#windowMs) return
    this.#sweptAt = now
    for (const [address, entry] of this.#entries) {
      if (now - entry.since > this.#windowMs && now >= entry.bannedUntil) this.#entries.delete(address)
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
