/** Asking what packs have contributed: each item on account of its pack, and none for the others. */
import type { Accounts } from '../pack.ts'
import type { Contribution } from './services.ts'

/** All that the items answer, in their order; one that throws is put down to its pack and answers nothing. `what` names an item: `skill source x`. */
export function askEach<T, R>(
  entries: readonly Contribution<T>[],
  accounts: Accounts,
  what: (item: T) => string,
  ask: (item: T) => readonly R[]
): R[] {
  return entries.flatMap(({ pack, item }) => {
    try {
      return accounts.onAccountOf(pack, what(item), () => [...ask(item)])
    } catch (error) {
      accounts.blame(pack, what(item), error)
      return []
    }
  })
}
