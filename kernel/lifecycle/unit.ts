/** One pack inside a kernel: its state, what it provides and registers, and the undo of all of it. */
import type { PackState } from '../info.ts'
import type { Pack } from '../pack.ts'
import { Registrations } from './registry.ts'
import { Scope } from './scope.ts'

export class Unit {
  pack: Pack
  state: PackState = 'Pending'
  /** False once the pack was unloaded on purpose. */
  wanted = true
  error: Error | undefined
  scope = new Scope()
  registrations: Registrations
  /** Services by token id, staged by setup. */
  provided = new Map<string, unknown>()
  /** Registrations that become visible together when the pack turns Active. */
  staged: (() => void)[] = []
  /** Activation sequence number; dependents have higher ones. */
  activated = 0

  constructor(pack: Pack) {
    this.pack = pack
    this.registrations = new Registrations(pack.name, pack.errors)
  }

  get name(): string {
    return this.pack.name
  }

  /** Fresh scope and lists for the next activation. */
  reset(): void {
    this.scope = new Scope()
    this.registrations = new Registrations(this.pack.name, this.pack.errors)
    this.provided = new Map()
    this.staged = []
    this.error = undefined
  }

  /** Ids of needed services. */
  needs(): string[] {
    return Object.values(this.pack.needs).map(token => token.id)
  }

  declares(): string[] {
    return this.pack.provides.map(token => token.id)
  }
}
