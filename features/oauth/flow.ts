/** One device-code login: polls the authorization server until the login is granted, refused, over or cancelled (RFC 8628). */
import { randomUUID } from 'node:crypto'
import { AppError } from '../../kernel/index.ts'
import type { AccountService, DeviceCode } from './account-service.ts'
import type { Credential, FlowSnapshot, FlowStatus } from './contract.ts'
import { AccountProblem } from './problem.ts'

/** What a login needs from around it. */
export interface FlowParts {
  readonly provider: string
  readonly oauth_host: string
  readonly client_id: string
  readonly service: Pick<AccountService, 'deviceCode' | 'deviceToken'>
  readonly now: () => Date
  /** Resolves after so many seconds; rejects after an abort. */
  readonly wait: (seconds: number, signal: AbortSignal) => Promise<void>
  /** Stores the credential and writes the provider; from here on the login cannot be cancelled. */
  readonly granted: (credential: Credential) => Promise<void>
  /** Hears of what is a bug, not a failed login. */
  readonly failed: (error: unknown) => void
}

/** However often the authorization server renews its codes, a login ends after so long. */
const BUDGET_MS = 15 * 60_000
const SLOW_DOWN_S = 5

/** A login from its code to its end; it polls by itself from the start. */
export class LoginFlow {
  readonly id = `oauth_${randomUUID()}`
  readonly #parts: FlowParts
  readonly #abort = new AbortController()
  readonly #ends: number
  #code: DeviceCode
  /** Seconds; never shorter than what was asked for once. */
  #interval = 0
  #expires = 0
  #status: FlowStatus = 'pending'
  #finishing = false
  #resolved: Date | undefined
  #message: string | undefined
  #run: Promise<void>

  /** `code`: the first one; undefined when the login was valid already. */
  constructor(parts: FlowParts, code: DeviceCode | undefined) {
    this.#parts = parts
    this.#ends = parts.now().getTime() + (code ? BUDGET_MS : 0)
    this.#code = code ?? noCode
    this.#adopt(this.#code)
    this.#run = Promise.resolve()
    if (code) this.#run = this.#poll()
    else this.#resolve('authenticated')
  }

  get status(): FlowStatus {
    return this.#status
  }

  snapshot(): FlowSnapshot {
    const { verification_uri, verification_uri_complete, user_code } = this.#code
    const left = Math.ceil((this.#expires - this.#parts.now().getTime()) / 1000)
    return {
      flow_id: this.id,
      provider: this.#parts.provider,
      status: this.#status,
      verification_uri,
      verification_uri_complete,
      user_code,
      expires_in: Math.max(0, left),
      expires_at: new Date(this.#expires).toISOString(),
      interval: this.#interval,
      resolved_at: this.#resolved?.toISOString(),
      error_message: this.#message
    }
  }

  /** Ends a pending flow; a login that was granted already is finished first. True when this call cancelled it. Resolves when the flow is quiet. */
  async cancel(): Promise<boolean> {
    const cancels = this.#status === 'pending' && !this.#finishing
    if (cancels) {
      this.#resolve('cancelled')
      this.#abort.abort(new Error('the login was cancelled'))
    }
    await this.#run
    return cancels
  }

  async #poll(): Promise<void> {
    const { signal } = this.#abort
    try {
      while (this.#status === 'pending') {
        await this.#pause()
        if (this.#timeLeft() <= 0) return this.#resolve('expired', 'the login was not completed in time')
        const credential = await this.#ask()
        if (signal.aborted) return
        if (!credential) continue
        this.#finishing = true
        await this.#parts.granted(credential)
        this.#resolve('authenticated')
      }
    } catch (error) {
      if (signal.aborted) return
      const known = error instanceof AccountProblem || AppError.is(error)
      if (!known) this.#parts.failed(error)
      this.#resolve('denied', known ? error.message : 'the login failed')
    }
  }

  /** The credential once it is granted; undefined: ask again. */
  async #ask(): Promise<Credential | undefined> {
    const { service, oauth_host, client_id } = this.#parts
    const { signal } = this.#abort
    try {
      return await service.deviceToken(oauth_host, client_id, this.#code.device_code, signal)
    } catch (error) {
      const state = error instanceof AccountProblem ? error.error : undefined
      if (state === 'authorization_pending') return undefined
      if (state === 'slow_down') {
        this.#interval += SLOW_DOWN_S
        return undefined
      }
      if (state === 'access_denied') throw new AccountProblem('the login was denied')
      if (state !== 'expired_token') throw error
      if (this.#timeLeft() > 0) this.#adopt(await service.deviceCode(oauth_host, client_id, signal))
      return undefined
    }
  }

  #adopt(code: DeviceCode): void {
    this.#code = code
    this.#interval = Math.max(this.#interval, code.interval)
    this.#expires = Math.min(this.#ends, this.#parts.now().getTime() + code.expires_in * 1000)
  }

  /** Until the next poll, or the end of the budget. */
  async #pause(): Promise<void> {
    await this.#parts.wait(Math.min(this.#interval, Math.max(0, this.#timeLeft() / 1000)), this.#abort.signal)
  }

  #timeLeft(): number {
    return this.#ends - this.#parts.now().getTime()
  }

  #resolve(status: FlowStatus, message?: string): void {
    this.#status = status
    this.#message = message
    this.#resolved = this.#parts.now()
  }
}

/** What a flow shows that needed no code. */
const noCode: DeviceCode = {
  device_code: '',
  user_code: '',
  verification_uri: '',
  verification_uri_complete: '',
  expires_in: 0,
  interval: 5
}
