/** The optional password that is accepted beside the token, kept only as a scrypt hash. */
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

/** Longest credential that is looked at, in bytes. */
const maxBytes = 1024
const running = 2
const waiting = 16

/** Constant time for texts of the secret's length; the length itself is no secret. */
export function sameText(candidate: string, secret: Buffer): boolean {
  if (candidate.length > maxBytes) return false
  const given = Buffer.from(candidate)
  return given.length === secret.length && timingSafeEqual(given, secret)
}

export class Password {
  readonly #salt: Buffer
  readonly #hash: Buffer
  /** Keyed digest of the password once it was proven, so that only the first request of a server pays for scrypt. */
  readonly #key = randomBytes(32)
  #proven: Buffer | undefined
  #running = 0
  readonly #queue: (() => void)[] = []

  constructor(salt: Buffer, hash: Buffer) {
    this.#salt = salt
    this.#hash = hash
  }

  /** Hashes the password; about 50 ms, off the event loop. */
  static async from(password: string): Promise<Password> {
    const salt = randomBytes(16)
    return new Password(salt, await derive(password, salt))
  }

  /** At most two hashes run at once; beyond a short queue the answer is no. */
  verify(candidate: string): boolean | Promise<boolean> {
    if (candidate.length > maxBytes) return false
    const digest = createHmac('sha256', this.#key).update(candidate).digest()
    if (this.#proven) return timingSafeEqual(digest, this.#proven)
    return this.#prove(candidate, digest)
  }

  async #prove(candidate: string, digest: Buffer): Promise<boolean> {
    while (this.#running >= running) {
      if (this.#queue.length >= waiting) return false
      await new Promise<void>(resolve => this.#queue.push(resolve))
    }
    this.#running++
    try {
      const right = timingSafeEqual(await derive(candidate, this.#salt), this.#hash)
      if (right) this.#proven = digest
      return right
    } finally {
      this.#running--
      this.#queue.shift()?.()
    }
  }
}

function derive(password: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, 32, { N: 16384, r: 8, p: 1 }, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
