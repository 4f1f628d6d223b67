/** Installs that run and how the last ones ended; in memory, one at a time for each capability, in all servers of the home. */
import { join } from 'node:path'
import { AppError, acquireLock, type Logger, lockHolder } from '../../kernel/index.ts'
import { InstallRunning, type InstallState } from './contract.ts'
import type { Capability } from './service.ts'
import { messageOf, missingIn } from './status.ts'

export interface InstallsPorts {
  /** `<home>/capabilities` */
  readonly dir: string
  readonly log: Logger
  /** Called after every change. */
  readonly tell: (capability_id: string, install: InstallState) => void
  readonly background: (work: (signal: AbortSignal) => Promise<unknown>) => void
  readonly detect: (capability: Capability, signal: AbortSignal) => ReturnType<Capability['detect']>
}

export class Installs {
  readonly #ports: InstallsPorts
  /** By capability; there are as many as packs bring. */
  readonly #states = new Map<string, InstallState>()

  constructor(ports: InstallsPorts) {
    this.#ports = ports
  }

  /** As it is here, or that another server of the home installs it. */
  async stateOf({ id }: Capability): Promise<InstallState> {
    if (this.#states.get(id)?.running !== true && (await lockHolder(this.#lockOf(id)))) {
      const own = this.#states.get(id)
      return own?.running ? own : { running: true, note: 'another server of this home installs it' }
    }
    return this.#states.get(id) ?? { running: false }
  }

  /** Resolves with how it began. Throws InstallRunning (40924). */
  async begin(capability: Capability): Promise<InstallState> {
    const { id } = capability
    if (this.#states.get(id)?.running) throw new AppError(InstallRunning)
    const before = this.#states.get(id)
    const began: InstallState = { running: true }
    this.#states.set(id, began)
    const lock = await acquireLock(this.#lockOf(id)).catch((error: unknown) => {
      this.#restore(id, before)
      throw error
    })
    if (!lock) {
      this.#restore(id, before)
      throw new AppError(InstallRunning, { message: 'another server of this home installs this capability' })
    }
    this.#ports.tell(id, began)
    this.#ports.background(async signal => {
      const end = await this.#run(capability, signal).finally(() => lock.release())
      this.#change(id, end)
    })
    return began
  }

  /** Never rejects. */
  async #run(capability: Capability, signal: AbortSignal): Promise<InstallState> {
    const { id } = capability
    try {
      const why = capability.unavailable()
      if (why !== undefined) return { running: false, error: why }
      let over = false
      const progress = {
        step: (step: string, percent?: number) => {
          const rounded = percent === undefined ? {} : { percent: Math.max(0, Math.min(100, Math.floor(percent))) }
          if (!over) this.#change(id, { running: true, step, ...rounded })
        }
      }
      const left = await capability.install(progress, signal).finally(() => {
        over = true
      })
      const { steps } = await this.#ports.detect(capability, signal)
      const missing = missingIn(steps)
      const note = left ?? (missing.length === 0 ? undefined : `not ready yet: ${missing.join(', ')}`)
      return { running: false, ...(note === undefined ? {} : { note }) }
    } catch (error) {
      if (signal.aborted) return { running: false, error: 'the server stopped while it was installed' }
      this.#ports.log.warn({ err: error, capability: id }, 'a capability could not be installed')
      return { running: false, error: messageOf(error) }
    }
  }

  #change(id: string, state: InstallState): void {
    const { running, step, percent } = this.#states.get(id) ?? {}
    if (running && state.running && step === state.step && percent === state.percent) return
    this.#states.set(id, state)
    this.#ports.tell(id, state)
  }

  #restore(id: string, before: InstallState | undefined): void {
    if (before) this.#states.set(id, before)
    else this.#states.delete(id)
  }

  #lockOf(id: string): string {
    return join(this.#ports.dir, `${encodeURIComponent(id)}.lock`)
  }
}
