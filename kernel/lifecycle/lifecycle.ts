/** Unit table and state machine: Pending, Activating, Active, Unloading, Failed. Transitions run one after another. */
import type { Feature, PackState } from '../info.ts'
import type { Logger } from '../log/log.ts'
import type { Pack } from '../pack.ts'
import type { Registry } from './registry.ts'
import type { ServiceTable } from './services.ts'
import { Unit } from './unit.ts'

export interface LifecycleOptions {
  readonly log: Logger
  readonly services: ServiceTable
  readonly registry: Registry
  /** Time limit of `setup`, ms. */
  readonly setupTimeoutMs: number
  /** How long running requests may go on when their pack unloads, ms. */
  readonly graceMs: number
  /** Checks the deployment config and runs the pack's `setup` with a context for this unit. */
  readonly setup: (unit: Unit) => Promise<void>
  /** Runs after every state change. */
  readonly onState: (name: string, state: PackState) => void
  /** Puts the current registrations on the wire; called once per transition that changed them. */
  readonly remount: () => void
}

export class Lifecycle {
  readonly #options: LifecycleOptions
  readonly #units: Unit[] = []
  #queue: Promise<unknown> = Promise.resolve()
  #sequence = 0
  #added = 0
  #dirty = false

  constructor(options: LifecycleOptions) {
    this.#options = options
  }

  /** Adds packs without activating them. Throws on a second pack of one name. */
  add(packs: readonly Pack[]): void {
    for (const pack of packs) {
      const known = this.#find(pack.name)
      if (known) throw new Error(`there are two packs named '${pack.name}'`)
      this.#units.push(new Unit(pack, this.#added++))
    }
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined
  }

  /** Activates everything that can be; resolves when nothing more can change. */
  settle(): Promise<void> {
    return this.#exclusive(() => this.#settle())
  }

  /** Adds (or enables again) a pack. A failed pack stays failed: that takes `reload`. */
  load(pack: Pack | string): Promise<void> {
    return this.#exclusive(async () => {
      if (typeof pack !== 'string' && !this.#find(pack.name)) this.add([pack])
      const unit = this.#known(typeof pack === 'string' ? pack : pack.name)
      unit.wanted = true
      await this.#settle()
    })
  }

  /** Takes a pack out, dependents first; they wait as Pending. */
  unload(name: string): Promise<void> {
    return this.#exclusive(async () => {
      const unit = this.#known(name)
      unit.wanted = false
      await this.#withdraw(unit)
      if (unit.state === 'Failed') this.#state(unit, 'Pending')
      await this.#settle()
    })
  }

  /** Unloads and activates again; the only way out of Failed. `replacement` brings a new version of the pack. */
  reload(name: string, replacement?: Pack): Promise<void> {
    return this.#exclusive(async () => {
      let unit = this.#known(name)
      if (replacement && replacement.name !== name) throw new Error(`pack '${replacement.name}' cannot replace '${name}'`)
      await this.#withdraw(unit)
      if (replacement) {
        const next = new Unit(replacement, unit.order)
        this.#units.splice(this.#units.indexOf(unit), 1, next)
        unit = next
      }
      unit.wanted = true
      unit.reset()
      this.#state(unit, 'Pending')
      await this.#settle()
    })
  }

  /** Unloads every pack in reverse order of activation. */
  async stop(): Promise<void> {
    await this.#exclusive(async () => {
      for (const unit of this.#units) unit.wanted = false
      for (const unit of this.#active().reverse()) await this.#deactivate(unit)
      this.#flush()
    })
  }

  features(): Feature[] {
    return this.#units
      .filter(unit => unit.wanted || unit.state === 'Unloading')
      .map(unit => {
        const waiting = unit.state === 'Pending' ? this.#missing(unit) : []
        return {
          name: unit.name,
          state: unit.state,
          meta: {
            ...(unit.pack.version === undefined ? {} : { version: unit.pack.version }),
            ...(waiting.length === 0 ? {} : { waiting_for: waiting }),
            ...(unit.error === undefined ? {} : { error: unit.error.message })
          }
        }
      })
  }

  /** Failure of a pack, with its cause, for the start-up error. */
  failure(name: string): Error | undefined {
    const unit = this.#find(name)
    if (!unit) return new Error('no such pack')
    if (unit.state === 'Failed') return unit.error
    if (unit.state !== 'Active') return new Error(`waiting for ${this.#missing(unit).join(', ') || 'nothing'}`)
    return undefined
  }

  #find(name: string): Unit | undefined {
    return this.#units.find(unit => unit.name === name)
  }

  #known(name: string): Unit {
    const unit = this.#find(name)
    if (!unit) throw new Error(`no pack named '${name}'`)
    return unit
  }

  #active(): Unit[] {
    return this.#units.filter(unit => unit.state === 'Active').sort((a, b) => a.activated - b.activated)
  }

  #missing(unit: Unit): string[] {
    return unit.needs().filter(id => !this.#options.services.has(id))
  }

  /** Each wish waits for the transition before it and reads the table as it is then. */
  #exclusive<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#queue.then(work)
    this.#queue = run.catch(() => undefined) // the caller gets the rejection; the next wish must run all the same
    return run
  }

  async #settle(): Promise<void> {
    for (;;) {
      const next = this.#units.find(unit => unit.wanted && unit.state === 'Pending' && this.#missing(unit).length === 0)
      if (!next) break
      await this.#activate(next)
    }
    this.#failCycles()
    this.#flush()
  }

  #flush(): void {
    if (!this.#dirty) return
    this.#dirty = false
    this.#options.remount()
  }

  async #activate(unit: Unit): Promise<void> {
    const { registry, services, log } = this.#options
    unit.reset()
    this.#state(unit, 'Activating')
    const began = performance.now()
    try {
      await withLimit(this.#options.setup(unit), this.#options.setupTimeoutMs, `setup took longer than ${this.#options.setupTimeoutMs} ms`)
      for (const id of unit.declares()) if (!unit.provided.has(id)) throw new Error(`setup did not provide '${id}'`)
      for (const id of unit.provided.keys()) {
        const owner = services.owner(id)
        if (owner !== undefined) throw new Error(`service '${id}' of ${unit.name} clashes with ${owner}`)
      }
      unit.registrations.errors.push(...unit.pack.errors)
      const clash = registry.clash(unit.registrations)
      if (clash !== undefined) throw new Error(clash)
    } catch (error) {
      await this.#fail(unit, error)
      return
    }
    unit.activated = ++this.#sequence
    unit.scope.own(registry.publish(unit.registrations))
    for (const [id, impl] of unit.provided) unit.scope.own(services.add(id, unit.name, impl))
    this.#dirty = true
    this.#state(unit, 'Active')
    for (const publish of unit.staged.splice(0)) publish()
    log.debug({ pack: unit.name, ms: Math.round(performance.now() - began) }, 'pack is active')
  }

  async #fail(unit: Unit, error: unknown): Promise<void> {
    unit.error = error instanceof Error ? error : new Error(String(error))
    await unit.registrations.activity.drain(0)
    this.#report(unit, await unit.scope.close(unit.error))
    this.#state(unit, 'Failed')
    this.#options.log.error({ pack: unit.name, err: unit.error }, 'pack failed')
  }

  /** Unloads a unit and everything that needs what it provides, dependents first. */
  async #withdraw(unit: Unit): Promise<void> {
    if (unit.state !== 'Active') return
    const leaving = new Set([unit])
    for (let grown = true; grown; ) {
      grown = false
      const ids = new Set([...leaving].flatMap(one => [...one.provided.keys()]))
      for (const other of this.#active()) {
        if (leaving.has(other) || !other.needs().some(id => ids.has(id))) continue
        leaving.add(other)
        grown = true
      }
    }
    for (const one of [...leaving].sort((a, b) => b.activated - a.activated)) await this.#deactivate(one)
  }

  async #deactivate(unit: Unit): Promise<void> {
    this.#state(unit, 'Unloading')
    unit.registrations.activity.refuse()
    this.#dirty = true
    const aborted = await unit.registrations.activity.drain(this.#options.graceMs)
    if (aborted > 0) this.#options.log.warn({ pack: unit.name, requests: aborted }, 'requests were aborted by unloading')
    this.#report(unit, await this.#close(unit))
    this.#state(unit, 'Pending')
  }

  /** A clean-up that hangs is given up after the time limit of a setup, so that one pack cannot hold the others. */
  async #close(unit: Unit): Promise<unknown[]> {
    const limit = this.#options.setupTimeoutMs
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<unknown[]>(resolve => {
      timer = setTimeout(() => resolve([new Error(`clean-up took longer than ${limit} ms and was given up`)]), limit)
    })
    const errors = await Promise.race([unit.scope.close(new Error('the pack is being unloaded')), late])
    clearTimeout(timer)
    return errors
  }

  /** Waiting units whose needs lead back to themselves can never activate: they fail with the cycle named. */
  #failCycles(): void {
    const waiting = this.#units.filter(unit => unit.wanted && unit.state === 'Pending')
    const providers = (unit: Unit) => waiting.filter(other => this.#missing(unit).some(id => other.declares().includes(id)))
    for (const unit of waiting) {
      if (unit.state !== 'Pending') continue
      const cycle = findCycle(unit, providers)
      if (!cycle) continue
      const named = [...cycle, cycle[0] as Unit].map(one => one.name).join(' -> ')
      for (const member of cycle) {
        member.error = new Error(`needs form a cycle: ${named}`)
        this.#state(member, 'Failed')
        this.#options.log.error({ pack: member.name, err: member.error }, 'pack failed')
      }
    }
  }

  #report(unit: Unit, errors: readonly unknown[]): void {
    for (const err of errors) this.#options.log.error({ pack: unit.name, err }, 'clean-up failed')
  }

  #state(unit: Unit, state: PackState): void {
    unit.state = state
    this.#options.onState(unit.name, state)
  }
}

/** The path from a unit back to itself, if there is one. */
function findCycle(start: Unit, next: (unit: Unit) => readonly Unit[]): Unit[] | undefined {
  const seen = new Set<Unit>()
  const walk = (unit: Unit, path: readonly Unit[]): Unit[] | undefined => {
    for (const other of next(unit)) {
      if (other === start) return [...path, unit]
      if (seen.has(other)) continue
      seen.add(other)
      const found = walk(other, [...path, unit])
      if (found) return found
    }
    return undefined
  }
  return walk(start, [])
}

async function withLimit(work: Promise<void>, ms: number, message: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), ms)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
