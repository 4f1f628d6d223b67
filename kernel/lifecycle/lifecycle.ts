/** Unit table and state machine: Pending, Activating, Active, Unloading, Failed. Transitions run one after another. */
import { dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../environment.ts'
import { AppError, developerError, PackAway, PassingFailure } from '../errors.ts'
import type { Feature, PackChange, PackState } from '../info.ts'
import type { Pack } from '../pack.ts'
import { Needs, type ServiceTable } from './needs.ts'
import { type Registry, Unit } from './unit.ts'
import { inOrder, isPromise, late, longestMs, waitAtMost } from './wait.ts'

interface LifecycleParts {
  readonly services: ServiceTable
  readonly registry: Registry
  /** Checks the deployment config and runs the pack's `setup` with a context for this unit. A promise is awaited. */
  readonly setup: (unit: Unit) => unknown
  readonly onState: (name: string, state: PackState) => void
  /** Puts the current registrations on the wire; called once per transition that changed them. */
  readonly remount: () => void
  /** Nothing is on its way back any more. */
  readonly settled: () => void
}

/** A setup that ended, and how. */
interface Ran {
  readonly ms: number
  readonly error: Error | undefined
}

export class Lifecycle {
  readonly #env: Environment
  readonly #parts: LifecycleParts
  readonly #units: Unit[] = []
  readonly #needs: Needs
  /** Each wish waits for the transition before it and reads the table as it is then. */
  readonly #exclusive = inOrder()
  #sequence = 0
  #dirty = false
  /** When running requests have had their time because everything stops (`performance.now()`). */
  #graceEnds = Number.POSITIVE_INFINITY

  /** Throws on a second pack of one name. */
  constructor(env: Environment, parts: LifecycleParts) {
    this.#env = env
    this.#parts = parts
    this.#needs = new Needs(this.#units, parts.services)
    for (const pack of env.options.packs) {
      if (this.#find(pack.name)) throw developerError('pack_twice', pack.name)
      this.#units.push(new Unit(pack))
    }
  }

  /** Activates everything that can be; resolves when nothing more can change. */
  settle(): Promise<void> {
    return this.#exclusive(() => this.#settle())
  }

  /**
   * Several packs go, are swapped and come as one transition: those that do not need each other drain and are set up side by side. Nothing of
   * it happens when a part is refused (`pack_unknown`, `pack_there`).
   */
  change({ unload = [], remove = [], reload = [], load = [] }: PackChange): Promise<void> {
    return this.#exclusive(async () => {
      const leaving = unload.map(name => this.#known(name))
      const going = new Set(remove.map(name => this.#known(name)))
      const swapped = new Map(reload.map(pack => [this.#known(nameOf(pack)), pack]))
      const coming = this.#coming(load)
      for (const unit of [...leaving, ...going]) unit.wanted = false
      await this.#withdraw(...leaving, ...going, ...swapped.keys())
      for (const unit of leaving) if (unit.state === 'Failed') this.#state(unit, 'Pending')
      this.#dirty ||= leaving.length + going.size > 0
      for (const unit of going) {
        this.#units.splice(this.#units.indexOf(unit), 1)
        this.#env.guard.forget(unit.name)
      }
      for (const [unit, pack] of swapped) {
        if (typeof pack !== 'string') unit.pack = pack
        unit.wanted = true
        unit.reset()
        this.#state(unit, 'Pending')
      }
      for (const [unit, pack] of coming) {
        if (!this.#units.includes(unit)) this.#units.push(unit)
        unit.pack = pack
        unit.wanted = true
      }
      await this.#settle()
    })
  }

  /** The units of packs to load, new ones for those that are not known, and what each is to be. */
  #coming(packs: readonly (Pack | string)[]): Map<Unit, Pack> {
    const coming = new Map<Unit, Pack>()
    for (const pack of packs) {
      const known = [...this.#units, ...coming.keys()].find(unit => unit.name === nameOf(pack))
      const unit = known ?? (typeof pack === 'string' ? this.#known(pack) : new Unit(pack))
      const there = coming.get(unit) ?? (unit.wanted ? unit.pack : undefined)
      const next = typeof pack === 'string' ? (there ?? unit.pack) : pack
      if (there && there !== next) throw developerError('pack_there', next.name)
      coming.set(unit, next)
    }
    return coming
  }

  /** Takes an active pack out as Failed, until `reload`; who needs it waits as Pending. Does nothing to a pack that is not active. */
  fail(name: string, error: Error): Promise<void> {
    return this.#exclusive(async () => {
      const unit = this.#find(name)
      if (unit?.state !== 'Active') return
      unit.error = error
      await this.#withdraw(unit)
      this.#failed(unit, error)
      await this.#settle()
    })
  }

  /** Takes one service of an active pack back; who needs it waits as Pending. */
  withdrawService(unit: Unit, id: string): Promise<void> {
    return this.#exclusive(async () => {
      if (unit.state !== 'Active' || !unit.provided.has(id)) return
      for (const one of this.#needs.dependents([unit], [id])) await this.#deactivate(one)
      unit.provided.delete(id)
      this.#parts.services.delete(id)
      await this.#settle()
    })
  }

  /** Unloads every pack, each when those are gone that use it. `begun`: when the stop began (`performance.now()`), and the grace time of all. */
  async stop(begun: number): Promise<void> {
    await this.#exclusive(async () => {
      this.#graceEnds = begun + this.#env.options.graceMs
      for (const unit of this.#units) unit.wanted = false
      await this.#withdraw(...this.#units)
      this.#flush()
    })
  }

  features(): Feature[] {
    return this.#units.filter(unit => unit.wanted || unit.state === 'Unloading').map(unit => this.#feature(unit))
  }

  /** Every pack, also those that were unloaded. */
  units(): { readonly unit: Unit; readonly feature: Feature }[] {
    return this.#units.map(unit => ({ unit, feature: this.#feature(unit) }))
  }

  /** What is answered for a pack that is away and comes back by itself; undefined: it is there, or it is not to be expected. */
  absence(name: string): AppError | undefined {
    const unit = this.#find(name)
    return unit && unit.state !== 'Active' ? this.#absence(unit) : undefined
  }

  /** It is leaving and will be set up again: in the same transition, or, where everything stops, by the next process. */
  comesBack(unit: Unit): boolean {
    return unit.state === 'Unloading' && (unit.wanted || this.#graceEnds !== Number.POSITIVE_INFINITY)
  }

  #absence(unit: Unit): AppError | undefined {
    if (!this.#needs.comes(unit)) return undefined
    const ms = unit.state === 'Failed' ? Math.max(0, Math.ceil((unit.againAt ?? 0) - performance.now())) : undefined
    const details = { pack: unit.name, ...(ms === undefined ? {} : { retry_after_ms: ms }) }
    return new AppError(PackAway, { message: `pack ${unit.name} is starting again; try again`, details })
  }

  #feature(unit: Unit): Feature {
    const waiting = unit.state === 'Pending' ? this.#needs.missing(unit) : []
    const faults = this.#env.guard.faults(unit.name)
    return {
      name: unit.name,
      state: unit.state,
      meta: {
        ...(unit.pack.version === undefined ? {} : { version: unit.pack.version }),
        ...(waiting.length === 0 ? {} : { waiting_for: waiting }),
        ...(unit.error === undefined ? {} : { error: textOf(unit.error, unit.pack.source) }),
        ...(faults === undefined ? {} : { faults })
      }
    }
  }

  #find(name: string): Unit | undefined {
    return this.#units.find(unit => unit.name === name)
  }

  #known(name: string): Unit {
    const unit = this.#find(name)
    if (!unit) throw developerError('pack_unknown', name)
    return unit
  }

  /**
   * Activates what can be, in the order of the plan. While a setup takes its time, those after it that need nothing of it run beside it;
   * what they made waits for their turn all the same, so that order and clashes do not depend on who is fast.
   */
  async #settle(): Promise<void> {
    const plan = this.#needs.plan()
    const begun = new Map<Unit, Promise<void>>()
    const ran = new Map<Unit, Ran>()
    /** `from`: those before it are through. */
    const begin = (at: number, from: number) => {
      const unit = plan[at] as Unit
      if (!begun.has(unit) && this.#needs.missing(unit).length === 0 && !this.#needs.mayYetGet(unit, plan.slice(from, at)))
        begun.set(unit, this.#run(unit, ran))
      return begun.get(unit)
    }
    for (const [at, unit] of plan.entries()) {
      const running = begin(at, at)
      if (!running) continue
      if (!ran.has(unit)) {
        for (let later = at + 1; later < plan.length; later++) void begin(later, at)
        await running
      }
      await this.#publish(unit, ran.get(unit) as Ran)
    }
    this.#failCycles()
    this.#flush()
    this.#parts.settled()
  }

  #flush(): void {
    if (!this.#dirty) return
    this.#dirty = false
    this.#parts.remount()
  }

  /** Runs the setup of a unit and tells `ran` how it ended: at once when it ends at once and well. Never rejects. */
  async #run(unit: Unit, ran: Map<Unit, Ran>): Promise<void> {
    const { guard, options } = this.#env
    const began = performance.now()
    let error: Error | undefined
    unit.reset()
    guard.forget(unit.name)
    this.#state(unit, 'Activating')
    try {
      const answer = guard.run(unit.name, 'setup', () => this.#parts.setup(unit))
      const ended = isPromise(answer) && (await waitAtMost(Promise.resolve(answer), options.setupTimeoutMs))
      if (ended === late) throw developerError('setup_late', options.setupTimeoutMs)
      for (const id of unit.declares()) if (!unit.provided.has(id)) throw developerError('service_absent', id)
    } catch (thrown) {
      error = reasonOf(thrown)
    }
    const ms = performance.now() - began
    if (error) await this.#close(unit, () => error)
    ran.set(unit, { ms, error })
  }

  /** Shows what a setup has made, unless it failed or clashes with what is there. */
  async #publish(unit: Unit, { ms, error }: Ran): Promise<void> {
    const { registry, services } = this.#parts
    unit.setupMs = Math.round(ms * 10) / 10
    if (error) {
      this.#failed(unit, error)
      return
    }
    try {
      if (unit.error) throw unit.error
      this.#assertFree(unit)
    } catch (thrown) {
      const reason = reasonOf(thrown) // also of what it declared, whatever it looked like when it was handed over
      await this.#close(unit, () => reason)
      this.#failed(unit, reason)
      return
    }
    unit.activeSince = this.#env.now()
    unit.activated = ++this.#sequence
    unit.scope.own(registry.publish(unit.registrations))
    for (const token of unit.pack.provides) services.set(token.id, { owner: unit.name, token, impl: unit.provided.get(token.id) })
    this.#dirty = true
    this.#state(unit, 'Active')
    try {
      for (const publish of unit.staged.splice(0)) publish()
    } catch (error) {
      // What it taps or adds to is not what it took it for.
      await this.#deactivate(unit)
      this.#failed(unit, reasonOf(error))
      return
    }
    this.#env.log.debug({ pack: unit.name, ms: Math.round(ms) }, 'pack is active')
  }

  #assertFree(unit: Unit): void {
    const { registry, services } = this.#parts
    for (const id of unit.provided.keys()) {
      const owner = services.get(id)?.owner
      if (owner !== undefined) throw developerError('service_clash', id, unit.name, owner)
    }
    registry.assertFree(unit.registrations)
  }

  /** Unloads units and everything that needs what they provide: each when those are gone that use it, side by side otherwise. */
  async #withdraw(...units: readonly Unit[]): Promise<void> {
    const active = units.filter(unit => unit.state === 'Active')
    const services = active.flatMap(unit => [...unit.provided.keys()])
    const leaving = new Set([...active, ...this.#needs.dependents(active, services)])
    const gone: Promise<void>[] = []
    const users = new Map<string, Promise<void>[]>() // by service: they are gone
    for (const unit of [...leaving].sort((a, b) => b.activated - a.activated)) {
      const first = [...unit.provided.keys()].flatMap(id => users.get(id) ?? [])
      const left = first.length === 0 ? this.#deactivate(unit) : Promise.all(first).then(() => this.#deactivate(unit))
      for (const id of unit.uses()) users.set(id, [...(users.get(id) ?? []), left])
      gone.push(left)
    }
    await Promise.all(gone)
  }

  async #deactivate(unit: Unit): Promise<void> {
    this.#state(unit, 'Unloading')
    // Whoever asks for an optional neighbour finds none from now on, while its running requests still end.
    for (const id of unit.provided.keys()) this.#parts.services.delete(id)
    this.#dirty = true
    this.#parts.registry.leaves(unit.registrations)
    const graceMs = Math.min(this.#env.options.graceMs, Math.max(0, this.#graceEnds - performance.now()))
    const aborted = await unit.registrations.activity.drain(graceMs, () => this.#absence(unit))
    if (aborted > 0) this.#env.log.warn({ pack: unit.name, requests: aborted }, 'requests were aborted by unloading')
    await this.#close(unit)
    this.#state(unit, 'Pending')
  }

  /** A clean-up that hangs is given up after the time limit of a setup, so that one pack cannot hold the others. */
  async #close(unit: Unit, why?: () => Error): Promise<void> {
    const errors = await unit.scope.close(why, this.#env.options.setupTimeoutMs)
    for (const error of errors) this.#env.guard.report(unit.name, 'clean-up', error)
  }

  #failCycles(): void {
    for (const cycle of this.#needs.cycles()) {
      const named = [...cycle, cycle[0] as Unit].map(one => one.name)
      for (const member of cycle) this.#failed(member, developerError('needs_cycle', named))
    }
  }

  #failed(unit: Unit, error: Error): void {
    unit.error = error
    this.#dirty = true // what it had may have been expected back
    this.#state(unit, 'Failed')
    if (error instanceof PassingFailure) {
      const ms = Math.min(error.again_ms, longestMs)
      unit.again = setTimeout(() => void this.#again(unit), ms).unref()
      unit.againAt = performance.now() + ms
    }
    this.#env.log.error({ pack: unit.name, err: unit.error }, 'pack failed')
  }

  /** Another try for what failed in passing. */
  #again(unit: Unit): Promise<void> {
    return this.#exclusive(async () => {
      if (unit.state !== 'Failed' || !unit.wanted || unit.again === undefined) return
      unit.reset()
      this.#state(unit, 'Pending')
      await this.#settle()
    })
  }

  #state(unit: Unit, state: PackState): void {
    clearTimeout(unit.again)
    unit.again = undefined
    unit.state = state
    this.#parts.onState(unit.name, state)
  }
}

const nameOf = (pack: Pack | string): string => (typeof pack === 'string' ? pack : pack.name)

const frame = /[( ](file:\/\/\/[^\s()?]+?|\/[^()?]+?)(?:\?[^\s():]*)?:(\d+):\d+\)?$/gm

/** With the line of the pack that it came from, where its stack names one. */
function textOf({ message, stack = '' }: Error, source: string | undefined): string {
  if (source === undefined || message.includes(source)) return message
  const folder = `${dirname(source)}${sep}`
  for (const [, place = '', line] of stack.matchAll(frame)) {
    const file = place.startsWith('file:') ? fileURLToPath(place) : place
    if (file.startsWith(folder) && !file.slice(folder.length).includes('node_modules')) return `${message} (${file}:${line})`
  }
  return message
}

const reasonOf = (error: unknown): Error => (error instanceof Error ? error : developerError('setup_threw', String(error)))
