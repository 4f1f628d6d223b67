/** Which workspaces the user trusts; nobody is trusted until told so. */
import type { TrustFile } from './contract.ts'
import type { Latest } from './latest.ts'

export type TrustListener = (id: string, trusted: boolean) => void

export const emptyTrust: TrustFile = { version: 1, trusted: {} }

export class Trust {
  readonly #file: Latest<TrustFile>
  readonly #listeners = new Set<TrustListener>()

  constructor(file: Latest<TrustFile>) {
    this.#file = file
  }

  async of(id: string): Promise<boolean> {
    return Object.hasOwn((await this.#file.get()).trusted, id)
  }

  /** On disk before it resolves; listeners hear of changes only. */
  async set(id: string, trusted: boolean, at: string): Promise<void> {
    if ((await this.of(id)) === trusted) return
    let changed = false
    await this.#file.update(current => {
      changed = Object.hasOwn(current.trusted, id) !== trusted
      if (!changed) return current
      const others = Object.entries(current.trusted).filter(([other]) => other !== id)
      return { ...current, trusted: Object.fromEntries(trusted ? [...others, [id, { trusted_at: at }]] : others) }
    })
    if (!changed) return
    for (const listener of [...this.#listeners]) listener(id, trusted)
  }

  onChange(listener: TrustListener): () => void {
    const entry: TrustListener = (id, trusted) => listener(id, trusted) // a listener may be registered twice
    this.#listeners.add(entry)
    return () => this.#listeners.delete(entry)
  }
}
