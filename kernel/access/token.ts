/** The token file `<home>/server.token`: made once, shared by all servers of a home, re-read when it changes. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sameText } from './password.ts'
import type { Principal } from './principal.ts'

const name = 'server.token'

/** Absolute path of the token file of a home. */
export function tokenPath(home: string): string {
  return join(home, name)
}

/** The current token, or undefined when none was made yet. */
export async function readToken(home: string): Promise<string | undefined> {
  try {
    return (await readFile(tokenPath(home), 'utf8')).trim() || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Replaces the token atomically and returns the new one. Running servers of the home accept it at once. */
export async function rotateToken(home: string): Promise<string> {
  const { temp, token } = await writeTemp(home)
  await rename(temp, tokenPath(home))
  return token
}

/** Reads the token, making one first if there is none: of several servers that start together, one wins. */
async function ensureToken(home: string): Promise<void> {
  if ((await readToken(home)) !== undefined) return
  const { temp } = await writeTemp(home)
  try {
    await link(temp, tokenPath(home)) // unlike rename, fails when another process was faster
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if ((await readToken(home)) === undefined) await rename(temp, tokenPath(home)) // an empty file is no token
  } finally {
    await rm(temp, { force: true })
  }
}

/** 32 random bytes as base64url, on disk before the name changes. */
async function writeTemp(home: string): Promise<{ temp: string; token: string }> {
  await mkdir(home, { recursive: true, mode: 0o700 })
  const token = randomBytes(32).toString('base64url')
  const temp = `${tokenPath(home)}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`
  const file = await open(temp, 'wx', 0o600)
  try {
    await file.writeFile(`${token}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  return { temp, token }
}

interface Version {
  readonly mtimeNs: bigint
  readonly ino: bigint
  readonly size: bigint
  readonly mode: bigint
}

/** The token as a running server knows it. */
export class TokenFile {
  readonly #path: string
  readonly #onIgnored: (reason: string) => void
  #token: Buffer
  /** Who brings this token; another one after a rotation. */
  principal: Principal
  #version: Version
  #fresh = false

  constructor(path: string, token: string, version: Version, onIgnored: (reason: string) => void) {
    this.#path = path
    this.#token = Buffer.from(token)
    this.principal = principalOf(token)
    this.#version = version
    this.#onIgnored = onIgnored
  }

  /** Throws when the file can be read by others, or is empty. `onIgnored` hears why a later rewrite was not taken over. */
  static async open(home: string, onIgnored: (reason: string) => void): Promise<TokenFile> {
    await ensureToken(home)
    const path = tokenPath(home)
    const version = statSync(path, { bigint: true })
    if (tooOpen(version)) {
      throw new Error(`${path} can be read by other users (mode ${modeText(version)}); run: chmod 600 ${path}`)
    }
    const token = await readToken(home)
    if (!token) throw new Error(`${path} is empty; remove it and start again`)
    return new TokenFile(path, token, version, onIgnored)
  }

  /**
   * Constant-time comparison. Looks at the file once per turn of the event loop (one `stat`, 2 to 3 µs, shared by the requests of a
   * burst): a rotated token works at once and the old one ends at once, without a watcher that could miss it.
   */
  matches(candidate: string): boolean {
    if (!this.#fresh) {
      this.#fresh = true
      setImmediate(() => {
        this.#fresh = false
      })
      this.#refresh()
    }
    return sameText(candidate, this.#token)
  }

  /** A missing file, one that others can read and an empty one leave the old token in force. */
  #refresh(): void {
    const version = this.#stat()
    const known = this.#version
    if (!version) return
    if (version.mtimeNs === known.mtimeNs && version.ino === known.ino && version.size === known.size && version.mode === known.mode) {
      return
    }
    this.#version = version
    if (tooOpen(version)) {
      this.#onIgnored(`the token file can be read by other users (mode ${modeText(version)}); the old token stays`)
      return
    }
    try {
      const token = readFileSync(this.#path, 'utf8').trim()
      if (token) {
        this.#token = Buffer.from(token)
        this.principal = principalOf(token)
      } else this.#onIgnored('the token file is empty; the old token stays')
    } catch (error) {
      this.#onIgnored(`the token file cannot be read (${(error as NodeJS.ErrnoException).code}); the old token stays`)
    }
  }

  #stat(): Version | undefined {
    try {
      return statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    } catch {
      return undefined // a home that cannot be reached right now changes no token
    }
  }
}

function principalOf(token: string): Principal {
  return { id: `token_${createHash('sha256').update(token).digest('hex').slice(0, 16)}`, kind: 'token', scopes: 'all' }
}

function tooOpen(version: Version): boolean {
  return process.platform !== 'win32' && (version.mode & 0o077n) !== 0n
}

function modeText(version: Version): string {
  return `0${(version.mode & 0o777n).toString(8)}`
}
