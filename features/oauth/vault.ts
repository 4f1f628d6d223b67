/** Stored credentials: read, renewed once for all who ask, on this server and on the others of the home. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, acquireLock, checker, type DocumentStore, type Lock, type Logger } from '../../kernel/index.ts'
import type { LoginStatus } from '../providers/index.ts'
import type { AccountService } from './account-service.ts'
import { Credential } from './contract.ts'
import { isDue, isUsable, loginStatus, tombstone } from './credential.ts'
import type { Account } from './place.ts'
import { AccountProblem } from './problem.ts'

export interface VaultParts {
  readonly home: string
  readonly store: DocumentStore<Credential>
  readonly service: Pick<AccountService, 'refresh'>
  readonly client_id: () => string | undefined
  readonly now: () => Date
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Length of a second of waiting before another try, ms. */
  readonly unit_ms: number
}

/** Waits between tries, in units. */
const RETRY_WAITS = [1, 2]
/** Three tries of another process, each with its time limit, and a little more. */
const LOCK_WAIT_MS = 45_000
const LOCK_POLL_MS = 25
/** A renewal that the server's stop meets may finish: its answer is the only copy of the next refresh token. */
const STOP_GRACE_MS = 1_500

export class Vault {
  readonly #parts: VaultParts
  readonly #renewals = new Map<string, Promise<string | undefined>>()
  readonly #stopping = new AbortController()
  readonly #stopped = new AbortController()

  constructor(parts: VaultParts) {
    this.#parts = parts
  }

  /** State of a slot. A small file is read in place: other servers of the home change it, and callers cannot wait. */
  status({ slot }: Account): LoginStatus {
    let value: unknown
    try {
      value = JSON.parse(readFileSync(join(this.#parts.home, 'credentials', `${slot}.json`), 'utf8'))
    } catch {
      return 'unauthenticated' // no file, or none that can be read: the same for who asks
    }
    return loginStatus(checker(Credential).Check(value) ? value : undefined, this.#parts.now())
  }

  /** A valid access token; undefined without a login that can give one. Rejects with AccountProblem when a renewal could not be had. */
  async token(account: Account, { force = false, signal }: { readonly force?: boolean; readonly signal?: AbortSignal } = {}) {
    signal?.throwIfAborted()
    const credential = await this.#parts.store.get(account.slot)
    if (!credential) return undefined
    const usable = isUsable(credential, this.#parts.now())
    if (credential.refresh_token === '') return usable && !force ? credential.access_token : undefined
    if (usable && !force && !isDue(credential, this.#parts.now())) return credential.access_token
    return until(this.#renewal(account, credential, force), signal)
  }

  async put(slot: string, credential: Credential): Promise<void> {
    await this.#parts.store.put(slot, credential)
  }

  async discard(slot: string): Promise<void> {
    await this.#parts.store.delete(slot)
  }

  /** Ends waits at once, and requests after a grace time; resolves when all is quiet. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'))
    const timer = setTimeout(() => this.#stopped.abort(new Error('the server stops')), STOP_GRACE_MS)
    await Promise.allSettled(this.#renewals.values())
    clearTimeout(timer)
  }

  #renewal(account: Account, before: Credential, force: boolean): Promise<string | undefined> {
    const { slot } = account
    let renewal = this.#renewals.get(slot)
    if (!renewal) {
      renewal = this.#renew(account, before, force).finally(() => this.#renewals.delete(slot))
      this.#renewals.set(slot, renewal)
    }
    return renewal
  }

  async #renew(account: Account, before: Credential, force: boolean): Promise<string | undefined> {
    const { store, now, log } = this.#parts
    const { slot } = account
    let current: Credential | undefined = before
    let lock: Lock | undefined
    try {
      lock = await this.#lock(slot)
      current = await store.get(slot)
      if (!current || current.refresh_token === '') return current && isUsable(current, now()) && !force ? current.access_token : undefined
      if (isUsable(current, now()) && (current.access_token !== before.access_token || !(force || isDue(current, now())))) {
        return current.access_token // another process was faster
      }
      const used = current.refresh_token
      const next = await this.#ask(account, used).catch((problem: unknown) => {
        if (problem instanceof AccountProblem && problem.rejected) return tombstone
        throw problem
      })
      if (next === tombstone) log.warn({ slot }, 'the authorization server refused the stored login')
      // A logout or a new login meanwhile: what it wrote stays.
      const stored = await store.update(slot, latest => (latest?.refresh_token === used ? next : latest))
      return stored?.access_token || undefined
    } catch (error) {
      const expected = error instanceof AccountProblem || this.#stopping.signal.aborted
      if (!expected || force || !current || !isUsable(current, now())) throw error
      log.warn({ slot, reason: (error as Error).message }, 'the access token could not be renewed; it is still valid')
      return current.access_token
    } finally {
      await lock?.release()
    }
  }

  async #ask({ oauth_host }: Account, refresh_token: string): Promise<Credential> {
    const { service, client_id, unit_ms } = this.#parts
    const client = client_id()
    if (!oauth_host || !client) throw new AccountProblem('the login cannot be renewed: its authorization host or the client id is not set')
    for (let attempt = 0; ; attempt++) {
      try {
        return await service.refresh(oauth_host, client, refresh_token, this.#stopped.signal)
      } catch (error) {
        const wait = RETRY_WAITS[attempt]
        if (!(error instanceof AccountProblem) || !error.transient || wait === undefined) throw error
        await delay(wait * unit_ms, undefined, { signal: this.#stopping.signal })
      }
    }
  }

  /** One renewal per home: without the lock nothing is asked. */
  async #lock(slot: string): Promise<Lock> {
    const path = join(this.#parts.home, 'oauth', `${slot}.lock`)
    const deadline = performance.now() + LOCK_WAIT_MS
    for (;;) {
      const lock = await acquireLock(path).catch((error: unknown) => {
        throw AppError.is(error) ? new AccountProblem('the lock of the login could not be taken', { cause: error }) : error
      })
      if (lock) return lock
      if (performance.now() >= deadline) throw new AccountProblem('another process did not finish renewing the login')
      await delay(LOCK_POLL_MS, undefined, { signal: this.#stopping.signal })
    }
  }
}

/** The promise's outcome, or the signal's reason if that comes first. */
async function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  let stop: (() => void) | undefined
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        stop = () => reject(signal.reason as Error)
        signal.addEventListener('abort', stop, { once: true })
      })
    ])
  } finally {
    if (stop) signal.removeEventListener('abort', stop)
  }
}
