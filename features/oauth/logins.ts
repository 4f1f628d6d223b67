/** The login flow of the managed provider: one at a time, started, read and cancelled from outside. */
import { AppError, type DataOf, InternalError, invalid } from '../../kernel/index.ts'
import { MANAGED_PROVIDER } from '../providers/index.ts'
import type { AccountService } from './account-service.ts'
import type { Credential, FlowSnapshot, FlowStatus, Region, startLogin } from './contract.ts'
import type { Enrolment } from './enrolment.ts'
import { type FlowParts, LoginFlow } from './flow.ts'
import type { Account, Place } from './place.ts'
import { AccountProblem } from './problem.ts'
import type { Vault } from './vault.ts'

export interface LoginParts extends Pick<FlowParts, 'now' | 'unit_ms' | 'failed'> {
  readonly service: Pick<AccountService, 'deviceCode' | 'deviceToken'>
  readonly vault: Pick<Vault, 'token' | 'put' | 'discard'>
  readonly enrolment: Pick<Enrolment, 'has' | 'enter' | 'leave'>
  /** The account that counts now. */
  readonly current: () => Account | undefined
  /** Where a login of this region goes. */
  readonly placeOf: (region: Region | undefined) => Place
  /** Settings that a login at this place lacks. */
  readonly missing: (place: Place) => readonly string[]
  readonly client_id: () => string | undefined
  /** Credentials that a logout discards. */
  readonly slots: () => readonly string[]
}

export class Logins {
  readonly #parts: LoginParts
  #flow: LoginFlow | undefined
  /** Starts and logouts run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #starting: AbortController | undefined
  #closed = false

  constructor(parts: LoginParts) {
    this.#parts = parts
  }

  /**
   * Cancels a pending flow and begins a new one, or answers at once when the login is valid. Throws 40001 naming the settings that are
   * missing, 50001 when no device code could be had.
   */
  start(region: Region | undefined, signal: AbortSignal): Promise<DataOf<typeof startLogin>> {
    return this.#turn(async () => {
      await this.#flow?.cancel()
      const place = this.#parts.placeOf(region)
      const valid = await this.#isValid(place, region === undefined)
      const flow = valid ? new LoginFlow(this.#flowParts(place), undefined) : await this.#begin(place, signal)
      this.#flow = flow
      if (this.#closed) await flow.cancel()
      const snapshot = flow.snapshot()
      const { flow_id, provider } = snapshot
      return valid ? { flow_id, provider, status: 'authenticated' as const } : { ...snapshot, status: 'pending' as const }
    })
  }

  read(): FlowSnapshot | undefined {
    return this.#flow?.readable ? this.#flow.snapshot() : undefined
  }

  async cancel(): Promise<{ cancelled: boolean; status: FlowStatus }> {
    const flow = this.#flow
    if (!flow?.readable) return { cancelled: false, status: 'cancelled' }
    const cancelled = await flow.cancel()
    return { cancelled, status: flow.status }
  }

  /** The credential goes first: whatever becomes of the rest, nobody can use it any more. */
  logout(): Promise<void> {
    this.#starting?.abort(new Error('the login was cancelled'))
    return this.#turn(async () => {
      await this.#flow?.cancel()
      for (const slot of this.#parts.slots()) await this.#parts.vault.discard(slot)
      await this.#parts.enrolment.leave()
    })
  }

  /** Somebody changed the managed provider: a login that is pending was meant for what it was before. */
  providerChanged(): void {
    void this.#flow?.cancel() // never rejects
  }

  /** Ends what is going on; resolves when all is quiet. */
  async close(): Promise<void> {
    this.#closed = true
    this.#starting?.abort(new Error('the server stops'))
    await this.#flow?.cancel()
    await this.#last
  }

  /**
   * True for a login that is still good; it is entered into the configuration where it is missing there. False as well when that
   * cannot be found out: then the user logs in anew. `anywhere`: a valid login at another place than a new one would go to counts, too.
   */
  async #isValid(place: Place, anywhere: boolean): Promise<boolean> {
    const { enrolment, current } = this.#parts
    const token = await this.#tokenOf(place)
    if (token !== undefined) {
      if (!enrolment.has(place)) await enrolment.enter(place, token)
      return true
    }
    const other = current()
    return anywhere && other !== undefined && other.slot !== place.slot && (await this.#tokenOf(other)) !== undefined
  }

  async #tokenOf(account: Account): Promise<string | undefined> {
    try {
      return await this.#parts.vault.token(account)
    } catch (error) {
      if (error instanceof AccountProblem) return undefined
      throw error
    }
  }

  async #begin(place: Place, signal: AbortSignal): Promise<LoginFlow> {
    const missing = this.#parts.missing(place)
    if (missing.length > 0) throw invalid(missing.map(name => ({ path: '', message: `the managed login is not set up: set ${name}` })))
    const starting = new AbortController()
    this.#starting = starting
    const parts = this.#flowParts(place)
    try {
      const until = AbortSignal.any([signal, starting.signal])
      return new LoginFlow(parts, await this.#parts.service.deviceCode(parts.oauth_host, parts.client_id, until))
    } catch (error) {
      if (error instanceof AccountProblem || starting.signal.aborted) {
        throw new AppError(InternalError, { message: `the login could not be started: ${(error as Error).message}`, cause: error })
      }
      throw error
    } finally {
      this.#starting = undefined
    }
  }

  #flowParts(place: Place): FlowParts {
    const { service, vault, now, unit_ms, failed, client_id, enrolment } = this.#parts
    const granted = async (credential: Credential) => {
      await vault.put(place.slot, credential)
      await enrolment.enter(place, credential.access_token)
    }
    const common = { provider: MANAGED_PROVIDER, service, now, unit_ms, failed, granted }
    return { ...common, oauth_host: place.oauth_host ?? '', client_id: client_id() ?? '' }
  }

  #turn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => undefined) // whoever asked hears of the failure; the next one only waits
    return result
  }
}
