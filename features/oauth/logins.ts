/** The login flow of the managed provider: one at a time, started, read and cancelled from outside. */
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, type DataOf, firstAbort, InternalError, inOrder, invalid } from '../../kernel/index.ts'
import { MANAGED_PROVIDER } from '../providers/index.ts'
import type { AccountService, DeviceCode } from './account-service.ts'
import type { Credential, FlowSnapshot, FlowStatus, Region, startLogin } from './contract.ts'
import type { Account, Endpoint } from './endpoint.ts'
import type { Enrolment } from './enrolment.ts'
import { type FlowParts, LoginFlow } from './flow.ts'
import { AccountProblem } from './problem.ts'
import type { TokenStore } from './token-store.ts'

export interface LoginParts extends Pick<FlowParts, 'now' | 'failed'> {
  /** Length of a second between polls, ms. */
  readonly unit_ms: number
  readonly service: Pick<AccountService, 'deviceCode' | 'deviceToken'>
  readonly tokens: Pick<TokenStore, 'token' | 'put' | 'discard'>
  readonly enrolment: Pick<Enrolment, 'has' | 'enter' | 'leave'>
  /** The account that counts now. */
  readonly current: () => Account | undefined
  /** Where a login of this region goes. */
  readonly endpointOf: (region: Region | undefined) => Endpoint
  /** Settings that a login at this endpoint lacks. */
  readonly missing: (endpoint: Endpoint) => readonly string[]
  readonly client_id: () => string | undefined
  /** Credentials that a logout discards. */
  readonly slots: () => readonly string[]
}

/** A login that has no flow yet: it is looked up whether it is needed, then a device code is awaited. */
interface Start {
  /** Later logins have higher numbers. */
  readonly number: number
  readonly region: Region | undefined
  readonly abort: AbortController
  /** Ended by `abort`, or because the client went away. */
  readonly until: AbortSignal
}

/** All logins of the process, of which at most one is pending. */
export class Logins {
  readonly #parts: LoginParts
  #flow: LoginFlow | undefined
  /** Number of the login whose flow is shown. */
  #shown = 0
  #started = 0
  readonly #starts = new Set<Start>()
  /** What touches credential and configuration runs one after the other; nobody waits in there for a device code. */
  readonly #queued = inOrder()
  #closed = false

  constructor(parts: LoginParts) {
    this.#parts = parts
  }

  /**
   * Cancels a pending flow and begins a new one, or answers at once when the login is valid. A later login does not wait for the code of
   * an earlier one, which is cancelled with its first breath. Throws 40001 naming the settings that are missing, 50001 when no device code
   * could be had or the login was cancelled before it came.
   */
  async start(region: Region | undefined, signal: AbortSignal): Promise<DataOf<typeof startLogin>> {
    const abort = new AbortController()
    const { signal: until, end } = firstAbort(signal, abort.signal)
    const start = { number: ++this.#started, region, abort, until }
    this.#starts.add(start)
    if (this.#closed) this.#abandon('the server stops')
    try {
      const endpoint = await this.#queued(() => this.#needed(start))
      if (!endpoint) return this.#authenticated(start)
      return this.#pending(start, endpoint, await this.#deviceCode(endpoint, start.until))
    } catch (error) {
      if (!(error instanceof AccountProblem) && !abort.signal.aborted) throw error
      throw new AppError(InternalError, { message: `the login could not be started: ${(error as Error).message}`, cause: error })
    } finally {
      end()
      this.#starts.delete(start)
    }
  }

  /** The last flow, however long ago it ended; undefined when this server has begun none. */
  read(): FlowSnapshot | undefined {
    return this.#flow?.snapshot()
  }

  /** A login that still waits for its code counts as pending. `status`: `cancelled` when there never was a flow. */
  async cancel(): Promise<{ cancelled: boolean; status: FlowStatus }> {
    const abandoned = this.#abandon('the login was cancelled')
    const flow = this.#flow
    const cancelled = (await flow?.cancel()) ?? false
    return { cancelled: abandoned || cancelled, status: abandoned ? 'cancelled' : (flow?.status ?? 'cancelled') }
  }

  /** The credential goes first: whatever becomes of the rest, nobody can use it any more. */
  logout(): Promise<void> {
    this.#abandon('the login was cancelled')
    return this.#queued(async () => {
      await this.#flow?.cancel()
      for (const slot of this.#parts.slots()) await this.#parts.tokens.discard(slot)
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
    this.#abandon('the server stops')
    await this.#flow?.cancel()
    await this.#queued(async () => undefined)
  }

  /** Ends the logins that have no flow yet; false when there was none. */
  #abandon(why: string): boolean {
    const starts = [...this.#starts]
    this.#starts.clear()
    for (const { abort } of starts) abort.abort(new Error(why))
    return starts.length > 0
  }

  /**
   * Where the login goes; undefined when it is not needed, because there is one that is still good. That one is entered into the
   * configuration where it is missing there. A login whose state cannot be found out is needed: the user logs in anew.
   */
  async #needed(start: Start): Promise<Endpoint | undefined> {
    const { endpointOf, enrolment, current } = this.#parts
    await this.#flow?.cancel()
    const endpoint = endpointOf(start.region)
    const token = await this.#tokenOf(endpoint, start.until)
    start.until.throwIfAborted()
    if (token !== undefined) {
      this.#starts.delete(start) // it is granted: too late to cancel it
      if (!enrolment.has(endpoint)) await enrolment.enter(endpoint, token)
      return undefined
    }
    // Without a region a valid login at another endpoint than a new one would go to counts, too.
    const other = start.region === undefined ? current() : undefined
    const elsewhere = other && other.slot !== endpoint.slot && (await this.#tokenOf(other, start.until)) !== undefined
    return elsewhere ? undefined : endpoint
  }

  async #tokenOf(account: Account, signal: AbortSignal): Promise<string | undefined> {
    try {
      return await this.#parts.tokens.token(account, { signal })
    } catch (error) {
      if (error instanceof AccountProblem) return undefined
      throw error
    }
  }

  async #deviceCode(endpoint: Endpoint, until: AbortSignal): Promise<DeviceCode> {
    const missing = this.#parts.missing(endpoint)
    if (missing.length > 0) throw invalid([{ path: '', message: `the managed login is not set up: set ${missing.join(', and ')}` }])
    const { oauth_host, client_id } = this.#flowParts(endpoint)
    const code = await this.#parts.service.deviceCode(oauth_host, client_id, until)
    until.throwIfAborted()
    return code
  }

  /** Nothing is awaited here: whoever cancels meets either the start or the flow. */
  #pending(start: Start, endpoint: Endpoint, code: DeviceCode): DataOf<typeof startLogin> {
    const flow = new LoginFlow(this.#flowParts(endpoint), code)
    const answer = { ...flow.snapshot(), status: 'pending' as const }
    if (start.number < this.#started) void flow.cancel() // a later login began meanwhile
    this.#show(start, flow)
    return answer
  }

  #authenticated(start: Start): DataOf<typeof startLogin> {
    const flow = new LoginFlow(this.#flowParts(this.#parts.endpointOf(start.region)), undefined)
    this.#show(start, flow)
    const { flow_id, provider } = flow.snapshot()
    return { flow_id, provider, status: 'authenticated' }
  }

  #show({ number }: Start, flow: LoginFlow): void {
    if (number < this.#shown) return
    this.#flow = flow
    this.#shown = number
  }

  #flowParts(endpoint: Endpoint): FlowParts {
    const { service, tokens, now, unit_ms, failed, client_id, enrolment } = this.#parts
    const wait: FlowParts['wait'] = (seconds, signal) => delay(seconds * unit_ms, undefined, { signal })
    const granted = async (credential: Credential) => {
      await tokens.put(endpoint.slot, credential)
      await enrolment.enter(endpoint, credential.access_token)
    }
    const common = { provider: MANAGED_PROVIDER, service, now, wait, failed, granted }
    return { ...common, oauth_host: endpoint.oauth_host ?? '', client_id: client_id() ?? '' }
  }
}
