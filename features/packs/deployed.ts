/** Makes the packs of a running server those of its configuration: what differs from what was applied last comes, goes, or is swapped. */
import { isDeepStrictEqual } from 'node:util'
import { AppError, inOrder, type PackChange, type PackControl } from '../../kernel/index.ts'
import { DeploymentFaulty, PackHeld, PackUnusable } from './contract.ts'
import type { Deployment, PackSource } from './source.ts'

export interface Change {
  readonly loaded: string[]
  readonly unloaded: string[]
  readonly reloaded: string[]
  readonly warnings: readonly string[]
}

export class Deployed {
  readonly #control: PackControl
  readonly #source: PackSource | undefined
  readonly #self: string
  #last: Deployment | undefined
  readonly #inOrder = inOrder()

  /** `self`: the pack that asks; it goes last and is not waited for. */
  constructor(control: PackControl, source: PackSource | undefined, self: string) {
    this.#control = control
    this.#source = source
    this.#self = self
    this.#last = source?.started
  }

  /** Names that the deployment leaves out. */
  get disabled(): readonly string[] {
    return this.#last?.disabled ?? []
  }

  /** One change after the other. Throws DeploymentFaulty or PackHeld, having changed nothing. */
  refresh(): Promise<Change> {
    return this.#inOrder(() => this.#refresh())
  }

  /** Unloads and loads a pack, its file read anew. Throws PackUnusable when what was read cannot take the place of an active one, which goes on. */
  reload(name: string): Promise<void> {
    return this.#inOrder(async () => {
      const runs = this.#control.list().some(report => report.name === name && report.state === 'Active')
      const found = await this.#source?.reread(name, runs)
      if (runs && found?.broken) {
        const message = `the pack goes on as it was, for its new version cannot be used: ${found.broken.message}`
        throw new AppError(PackUnusable, { message, cause: found.broken })
      }
      await this.#control.change({ reload: [found ?? name] })
      // What is there now is what the next refresh compares with.
      if (found && this.#last) this.#last = { ...this.#last, packs: this.#last.packs.map(pack => (pack.name === name ? found : pack)) }
    })
  }

  async #refresh(): Promise<Change> {
    const source = this.#source
    if (!source || !this.#last) return { loaded: [], unloaded: [], reloaded: [], warnings: [] }
    const next = await source.read().catch((cause: unknown) => {
      throw new AppError(DeploymentFaulty, { message: cause instanceof Error ? cause.message : String(cause), cause })
    })
    const before = byName(this.#last)
    const after = byName(next)
    const there = new Map(this.#control.list().map(report => [report.name, report]))
    const unloaded = [...before.keys()].filter(name => !after.has(name) && there.has(name))
    const held = unloaded.find(name => there.get(name)?.required)
    if (held !== undefined) throw new AppError(PackHeld, { message: `pack '${held}' is required by this server and cannot be disabled` })
    const changed = (name: string) => !isDeepStrictEqual({ ...(this.#last?.config[name] ?? {}) }, { ...(next.config[name] ?? {}) })
    const reloaded = [...after.keys()].filter(name => {
      const other = before.get(name) !== after.get(name) || changed(name)
      return other && before.has(name) && there.has(name)
    })
    const loaded = [...after.keys()].filter(name => !before.has(name))

    for (const name of new Set([...Object.keys(this.#last.config), ...Object.keys(next.config)]))
      if (changed(name)) this.#control.configure(name, next.config[name])
    this.#last = next
    const change = (mine: (name: string) => boolean): PackChange => {
      const packsOf = (names: readonly string[]) => names.filter(mine).map(name => after.get(name)!)
      const reload = packsOf([...reloaded, ...loaded.filter(name => there.has(name))])
      return { remove: unloaded.filter(mine), reload, load: packsOf(loaded.filter(name => !there.has(name))) }
    }
    await this.#control.change(change(name => name !== this.#self))
    if (unloaded.includes(this.#self) || reloaded.includes(this.#self)) void this.#control.change(change(name => name === this.#self))
    return { loaded, unloaded, reloaded, warnings: next.warnings }
  }
}

function byName({ packs }: Deployment) {
  return new Map(packs.map(pack => [pack.name, pack]))
}
