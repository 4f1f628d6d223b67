/** Tags of a document: one for each pack that declares something, in groups of packs of a kind. */
import type { Declarations, PackFacts } from '../../kernel/index.ts'

export interface Tag {
  readonly name: string
  readonly description: string
}

export class Areas {
  readonly #owners: Declarations['owners']
  readonly #used = new Map<string, PackFacts>()

  constructor(owners: Declarations['owners'] = new Map()) {
    this.#owners = owners
  }

  /** The tag of a declaration: the name of its pack; `other` for what no pack declares. */
  tagOf(spec: object, other: string): string {
    const facts = this.#owners.get(spec) ?? { name: other }
    if (!this.#used.get(facts.name)?.description) this.#used.set(facts.name, facts)
    return facts.name
  }

  /** All tags that were given, by name. */
  tags(): Tag[] {
    return this.#sorted().map(({ name, description }) => ({ name, description: description ?? `What ${name} declares` }))
  }

  /** Tags by area, as `x-tagGroups` has them. */
  groups(): { readonly name: string; readonly tags: readonly string[] }[] {
    const groups = new Map<string, string[]>()
    for (const { name, area = 'Other' } of this.#sorted()) groups.set(area, [...(groups.get(area) ?? []), name])
    return [...groups].map(([name, tags]) => ({ name, tags })).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #sorted(): PackFacts[] {
    return [...this.#used.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}
