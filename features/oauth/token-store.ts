/** Stored credentials: read, renewed once for all who ask, on this server and on the others of the home. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, acquireLock, type DocumentStore, type Lock, type Logger, untilAborted } from '../../kernel/index.ts'
import type { LoginStatus, TokenOptions } from '../llm/index.ts'
import type { AccountService } from './account-service.ts'
import type { Credential } from './contract.ts'
import { canBeCredential, isDue, isUsable, loginStatus, readCredentialFile, tombstone } from './credential.ts'
import type { Account } from './endpoint.ts'
import { AccountProblem } from './problem.ts'

export interface TokenStoreParts {
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

/** The credentials of a home, by the name of their file. */
export class TokenStore {
  readonly #parts: TokenStoreParts
  readonly #renewals = new Map<string, Promise<string | undefined>>()
  /** Renewals that were granted and could not be written; `used` is the refresh token that they replace. */
  readonly #unsaved = new Map<string, { readonly used: string; readonly next: Credential }>()
  readonly #stopping = new AbortController()
  readonly #stopped = new AbortController()

  constructor(parts: TokenStoreParts) {
    this.#parts = parts
  }

  /** State of a slot. A small file is read in place: other servers of the home change it, and callers cannot wait. */
  status({ slot }: Account): LoginStatus {
    return loginStatus(readCredentialFile(this.#parts.home, slot), this.#parts.now())
  }

  /** A valid access token; undefined without a login that can give one. Rejects with AccountProblem when a renewal could not be had. */
  async token(account: Account, { force: asked = false, refused, signal }: TokenOptions = {}): Promise<string | undefined> {
    signal?.throwIfAborted()
    const { slot } = account
    await this.#saveAgain(slot)
    const credential = await this.#read(slot)
    if (!credential) return undefined
    const force = asked && (refused === undefined || refused === credential.access_token)
    const usable = isUsable(credential, this.#parts.now())
    if (credential.refresh_token === '') return usable && !force ? credential.access_token : undefined
    if (usable && !force && !isDue(credential, this.#parts.now())) return credential.access_token
    return untilAborted(this.#renewal(account, credential, force), signal)
  }

  /** A renewal that could not be written goes once there is something in its place. */
  async put(slot: string, credential: Credential): Promise<void> {
    await this.#parts.store.put(slot, credential)
    this.#unsaved.delete(slot)
  }

  /** As `put`: also one whose write failed meanwhile goes. */
  async discard(slot: string): Promise<void> {
    await this.#parts.store.delete(slot)
    this.#unsaved.delete(slot)
  }

  /** Ends waits at once, and requests after a grace time; resolves when all is quiet. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'))
    const timer = setTimeout(() => this.#stopped.abort(new Error('the server stops')), STOP_GRACE_MS)
    await Promise.allSettled(this.#renewals.values())
    clearTimeout(timer)
    await Promise.allSettled([...this.#unsaved.keys()].map(slot => this.#saveAgain(slot)))
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
    const { now, log } = this.#parts
    const { slot } = account
    let current: Credential | undefined = before
    let lock: Lock | undefined
    try {
      lock = await this.#lock(slot)
      current = await this.#read(slot)
      if (!current || current.refresh_token === '') return current && isUsable(current, now()) && !force ? current.access_token : undefined
      if (isUsable(current, now()) && (current.access_token !== before.access_token || !(force || isDue(current, now())))) {
        return current.access_token // another process was faster
      }
      const next = await this.#ask(account, current.refresh_token).catch((problem: unknown) => {
        if (problem instanceof AccountProblem && problem.rejected) return tombstone
        throw problem
      })
      if (next === tombstone) log.warn({ slot }, 'the authorization server refused the stored login')
      return (await this.#save(slot, this.#unsaved.get(slot)?.used ?? current.refresh_token, next))?.access_token || undefined
    } catch (error) {
      const expected = error instanceof AccountProblem || this.#stopping.signal.aborted
      if (!expected || force || !current || !isUsable(current, now())) throw error
      log.warn({ slot, reason: (error as Error).message }, 'the access token could not be renewed; it is still valid')
      return current.access_token
    } finally {
      await lock?.release()
    }
  }

  async #read(slot: string): Promise<Credential | undefined> {
    const unsaved = this.#unsaved.get(slot)
    if (unsaved) return unsaved.next
    return (await canBeCredential(this.#parts.home, slot)) ? await this.#parts.store.get(slot) : undefined
  }

  /**
   * Writes a granted renewal over the credential that it replaces; what a logout or a new login wrote meanwhile stays. The old refresh
   * token is worth nothing any more, so a renewal that cannot be written is kept and written later.
   */
  async #save(slot: string, used: string, next: Credential): Promise<Credential | undefined> {
    try {
      const stored = await this.#parts.store.update(slot, latest => (latest?.refresh_token === used ? next : latest))
      this.#unsaved.delete(slot)
      return stored
    } catch (error) {
      if (!AppError.is(error)) throw error
      this.#parts.log.warn({ err: error, slot }, 'the renewed login could not be saved; it is kept in memory until it can')
      this.#unsaved.set(slot, { used, next })
      return next
    }
  }

  async #saveAgain(slot: string): Promise<void> {
    const waiting = this.#unsaved.get(slot)
    if (waiting) await this.#save(slot, waiting.used, waiting.next)
  }

  async #ask({ oauth_host }: Account, refresh_token: string): Promise<Credential> {
    const { service, client_id, unit_ms } = this.#parts
    const client = client_id()
    if (!oauth_host || !client)
      throw new AccountProblem('the login cannot be renewed: its authorization host or the client id is not set', { unset: true })
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
