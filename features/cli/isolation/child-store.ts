/** Stores of a pack in a process of its own: they are in the server, and are called without standing still (but for `scan`). */
import { isDeepStrictEqual } from 'node:util'
import type { DocumentStore, StoreSpec } from '../../../kernel/index.ts'
import type { Peer } from './peer.ts'

type Methods = Record<string, (...args: never[]) => unknown>

/** The one method that answers at once. */
const atOnce = 'scan'

export function childStore(peer: Peer, spec: StoreSpec, there: unknown): object {
  const { id, names } = there as { id: object; names: readonly string[] }
  const methods: Record<string, unknown> = {}
  const store = id as Methods
  for (const name of names) methods[name] = name === atOnce ? store[name] : (...args: unknown[]) => peer.callOn(id, name, args)
  if (spec.kind === 'document') methods.update = updating(methods as unknown as Documents)
  return methods
}

interface Documents extends Pick<DocumentStore<unknown>, 'get'> {
  /** Puts the value if the document is still what it was; answers whether it was. */
  exchange(id: string, before: unknown, after: unknown): Promise<boolean>
}

/** The change runs here, on what the document was, and counts when it still is that: as often as it takes. */
function updating({ get, exchange }: Documents): DocumentStore<unknown>['update'] {
  return async (id, change) => {
    for (;;) {
      const before = await get(id)
      const after = change(structuredClone(before))
      if (isDeepStrictEqual(before, after) || (await exchange(id, before, after))) return after
    }
  }
}
