/** Who needs whom: the order in which packs activate and go, what they wait for, and needs that lead in a circle. */
import { PassingFailure } from '../errors.ts'
import type { ServiceToken } from './services.ts'
import type { Unit } from './unit.ts'

/** Services by token id: what active packs and the kernel provide. */
export type ServiceTable = Map<string, { readonly owner: string; readonly token: ServiceToken<unknown>; readonly impl: unknown }>

/** Answers from the units and services as they are at the moment of the question. */
export class Needs {
  readonly #units: readonly Unit[]
  readonly #services: ServiceTable

  constructor(units: readonly Unit[], services: ServiceTable) {
    this.#units = units
    this.#services = services
  }

  /** What a unit needs and nobody provides now. */
  missing(unit: Unit): string[] {
    return unit.needs().filter(id => !this.#services.has(id))
  }

  /** Waiting packs in the order in which they would activate one after another if none failed: as soon as they can, ties in list order. */
  plan(): Unit[] {
    const waiting = this.#waiting()
    const missing = new Map(waiting.map(unit => [unit, this.missing(unit)]))
    const there = new Set<string>()
    const plan: Unit[] = []
    for (;;) {
      const at = waiting.findIndex(unit => missing.get(unit)?.every(id => there.has(id)))
      if (at < 0) return plan
      const [next] = waiting.splice(at, 1) as [Unit]
      plan.push(next)
      for (const id of next.declares()) there.add(id)
    }
  }

  /** One of `others` is being set up and may yet bring a service that the unit can do without. */
  mayYetGet(unit: Unit, others: readonly Unit[]): boolean {
    const wanted = Object.values(unit.pack.optional).map(token => token.id)
    if (wanted.length === 0) return false
    return others.some(one => one.state === 'Activating' && one.declares().some(id => wanted.includes(id)))
  }

  /** Active packs beside these units that need services of theirs, directly or through others, those that were activated last first. */
  dependents(units: readonly Unit[], services: readonly string[]): Unit[] {
    const ids = new Set(services)
    const leaving = new Set<Unit>()
    for (let grown = true; grown; ) {
      grown = false
      for (const other of this.#units) {
        if (other.state !== 'Active' || units.includes(other) || leaving.has(other) || !other.needs().some(id => ids.has(id))) continue
        leaving.add(other)
        for (const id of other.provided.keys()) ids.add(id)
        grown = true
      }
    }
    return [...leaving].sort((a, b) => b.activated - a.activated)
  }

  /**
   * A pack is there or will be without anybody's doing: it is between two activations, waits for its next try, or for packs of which that
   * is true.
   */
  comes(unit: Unit, asked = new Set<Unit>()): boolean {
    if (!unit.wanted || asked.has(unit)) return false
    asked.add(unit)
    if (unit.state === 'Failed') return unit.again !== undefined
    if (unit.error && !(unit.error instanceof PassingFailure)) return false
    if (unit.state === 'Activating') return true
    return unit.needs().every(id => {
      const providers = this.#units.filter(other => other.declares().includes(id))
      if (providers.length === 0) return this.#services.has(id)
      return providers.some(other => (other.state !== 'Active' || this.#services.has(id)) && this.comes(other, asked))
    })
  }

  /** Waiting units whose needs lead back to themselves, circle by circle: they can never activate. One that failed meanwhile is in no other. */
  *cycles(): Generator<Unit[]> {
    const waiting = this.#waiting()
    const providers = (unit: Unit) => waiting.filter(other => this.missing(unit).some(id => other.declares().includes(id)))
    for (const unit of waiting) {
      const cycle = unit.state === 'Pending' ? findCycle(unit, providers) : undefined
      if (cycle) yield cycle
    }
  }

  #waiting(): Unit[] {
    return this.#units.filter(unit => unit.wanted && unit.state === 'Pending')
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
