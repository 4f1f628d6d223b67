/** Credentials: the token file `<home>/server.token`, shared by all servers of a home, and the optional password beside it. */
import { createHash, createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { DeveloperError, developerError } from '../errors.ts'
import { makeHome, readRegularFile } from '../home.ts'
import { isPromise, waitAtMost } from '../lifecycle/wait.ts'
import { makeFile, replaceFile } from '../storage/files.ts'
import { foundAt } from '../storage/look.ts'
import type { Principal } from './principal.ts'

/** Absolute path of the token file of a home. */
export function tokenPath(home: string): string {
  return join(home, 'server.token')
}

/** The current token, or undefined when none was made yet. Throws when the file cannot be read or is no regular file. */
export function readToken(home: string): string | undefined {
  try {
    return readRegularFile(tokenPath(home)).trim() || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Replaces the token atomically and returns the new one. Running servers of the home accept it at once and end what the old one opened. */
export async function rotateToken(home: string): Promise<string> {
  const token = newToken()
  makeHome(home)
  await replaceFile(tokenPath(home), `${token}\n`, { unserialised: true })
  return token
}

/** Makes a token when there is none: of several servers that start together, one wins. */
async function ensureToken(home: string): Promise<void> {
  if (readToken(home) !== undefined) return
  const text = `${newToken()}\n`
  makeHome(home)
  if (await makeFile(tokenPath(home), text)) return
  if (readToken(home) === undefined) await replaceFile(tokenPath(home), text, { unserialised: true }) // an empty file is no token
}

function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Tells one version of the file from another. */
const stampOf = ({ mtimeMs, ino, size, mode }: Stats) => [mtimeMs, ino, size, mode].join(' ')

/** How often the file is looked at for the sake of what is open, ms. */
const watchMs = 1_000
/** So long a right token waits for a disk that is slow to say whether it still is; a wrong one longer, for it may be new. */
const rightWaitsMs = 50
const wrongWaitsMs = 10_000

/** A look at the file that another thread takes. */
interface Looking {
  readonly ended: Promise<void>
  readonly since: number
}

/** The token as a running server knows it. */
export class TokenFile {
  readonly #path: string
  readonly #onIgnored: (reason: string) => void
  #token = Buffer.alloc(0)
  #principal: Principal
  #stamp: string
  #fresh = false
  #looking: Looking | undefined
  #rotated: ((before: Principal) => void) | undefined

  /** Use `open`. */
  constructor(path: string, token: string, stamp: string, onIgnored: (reason: string) => void) {
    this.#path = path
    this.#stamp = stamp
    this.#onIgnored = onIgnored
    this.#principal = this.#take(token)
  }

  /** Throws when the file can be read by others, or is no token. `onIgnored` hears why a later rewrite was not taken over. */
  static async open(home: string, onIgnored: (reason: string) => void): Promise<TokenFile> {
    await ensureToken(home)
    const path = tokenPath(home)
    const stats = statSync(path)
    if (tooOpen(stats)) throw developerError('token_exposed', path, modeText(stats))
    const token = readToken(home)
    if (!token) throw developerError('token_empty', path)
    return new TokenFile(path, token, stampOf(stats), onIgnored)
  }

  /**
   * Who brings this text: undefined when it is not the token. Constant-time comparison. Looks at the file once per turn of the event
   * loop (one `stat`, 2 to 3 µs, shared by the requests of a burst): a rotated token works at once and the old one ends at once, or as soon as a
   * slow disk says so.
   */
  identify(candidate: string): Principal | undefined | Promise<Principal | undefined> {
    const before = this.#looking
    if (!this.#fresh) {
      this.#fresh = true
      setImmediate(() => {
        this.#fresh = false
      })
      this.#refresh()
    }
    const looking = this.#looking
    return looking ? this.#afterLook(looking, candidate, looking === before) : this.#compare(candidate)
  }

  /** `older`: the look began before the candidate came, which may be newer than what it sees: then the next look decides. */
  async #afterLook(looking: Looking, candidate: string, older: boolean): Promise<Principal | undefined> {
    const waitsMs = this.#compare(candidate) ? rightWaitsMs : wrongWaitsMs
    await waitAtMost(looking.ended, Math.max(0, looking.since + waitsMs - performance.now()))
    const found = this.#compare(candidate)
    if (found || !older) return found
    this.#refresh()
    return this.#looking ? await this.#afterLook(this.#looking, candidate, false) : this.#compare(candidate)
  }

  #compare(candidate: string): Principal | undefined {
    if (candidate.length > maxCredential) return undefined
    const given = Buffer.from(candidate)
    return given.length === this.#token.length && timingSafeEqual(given, this.#token) ? this.#principal : undefined
  }

  /** Tells of every rotation whose token ended with it, also while nobody asks for anything. Returns the undo. */
  watch(rotated: (before: Principal) => void): () => void {
    this.#rotated = rotated
    const timer = setInterval(() => this.#refresh(), watchMs).unref()
    return () => {
      clearInterval(timer)
      this.#rotated = undefined
    }
  }

  #take(token: string): Principal {
    const digest = createHash('sha256').update(token).digest('hex')
    this.#token = Buffer.from(token)
    this.#principal = { id: `token_${digest.slice(0, 16)}`, kind: 'token', scopes: 'all' }
    return this.#principal
  }

  #refresh(): void {
    if (this.#looking) return
    try {
      const found = foundAt(this.#path)
      if (!isPromise(found)) {
        this.#seen(found)
        return
      }
      const ended = (found as Promise<Stats | undefined>)
        .then(
          stats => this.#seen(stats),
          () => undefined // as below
        )
        .finally(() => {
          this.#looking = undefined
        })
      this.#looking = { ended, since: performance.now() }
    } catch {
      // a home that cannot be reached right now changes no token
    }
  }

  /** A missing file, one that others can read, an empty one and what is no file at all leave the old token in force. */
  #seen(stats: Stats | undefined): void {
    if (!stats || stampOf(stats) === this.#stamp) return
    const before = this.#principal
    this.#stamp = stampOf(stats)
    const reason = tooOpen(stats) ? `the token file can be read by other users (mode ${modeText(stats)})` : this.#reread()
    if (reason !== undefined) this.#onIgnored(`${reason}; the old token stays`)
    else if (this.#principal.id !== before.id) this.#rotated?.(before)
  }

  /** Takes over what the file says, or tells why not. */
  #reread(): string | undefined {
    try {
      const token = readRegularFile(this.#path).trim()
      if (token === '') return 'the token file is empty'
      this.#take(token)
      return undefined
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'EMFILE' || code === 'ENFILE') this.#stamp = '' // passes: look again
      return `the token file cannot be read (${error instanceof DeveloperError ? message : (code ?? message)})`
    }
  }
}

function tooOpen({ mode }: Stats): boolean {
  return process.platform !== 'win32' && (mode & 0o077) !== 0
}

function modeText({ mode }: Stats): string {
  return `0${(mode & 0o777).toString(8)}`
}

/** Longest credential that is looked at, in bytes. */
const maxCredential = 1024
/** Password hashes that run at once, and that may wait. */
const hashing = 2
const waiting = 16

/** The password, kept only as a scrypt hash. */
export class Password {
  readonly #salt: Buffer
  readonly #hash: Buffer
  /** Keyed digest of the password once it was proven, so that only the first request of a server pays for scrypt. */
  readonly #key = randomBytes(32)
  #proven: Buffer | undefined
  /** Verdicts under way, by keyed digest: a client that begins with many requests at once brings the same text with each. */
  readonly #verdicts = new Map<string, Promise<boolean>>()
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

  async verify(candidate: string): Promise<boolean> {
    if (candidate.length > maxCredential) return false
    const digest = createHmac('sha256', this.#key).update(candidate).digest()
    if (this.#proven) return timingSafeEqual(digest, this.#proven)
    const key = digest.toString('base64')
    let verdict = this.#verdicts.get(key)
    if (!verdict) {
      verdict = this.#judge(candidate, digest).finally(() => this.#verdicts.delete(key))
      this.#verdicts.set(key, verdict)
    }
    return verdict
  }

  /** At most two hashes run at once; beyond a short queue the answer is no. */
  async #judge(candidate: string, digest: Buffer): Promise<boolean> {
    while (this.#running >= hashing) {
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
