/** What a list of models, or the end of a provider, does to the table of the configuration file. */
import type { FoundModel } from './discovery.ts'
import { type AliasChange, Draft } from './draft.ts'
import type { Table } from './tables.ts'

/**
 * Aliases `<id>/<key>` of a provider become what was found. Aliases under other names and of other providers, fields that discovery does
 * not know and `overrides` stay. A default that names a vanished alias is cleared, the secondary-model pool follows. Nothing found changes
 * nothing. Throws 40001 when the table is damaged.
 */
export function writeAliases(file: Table, id: string, found: readonly FoundModel[]): AliasChange {
  const draft = new Draft(file)
  const change = draft.settle(id, found)
  if (change.changed) draft.close(file)
  return change
}

/**
 * Takes a provider out, whoever owns it: its aliases, and what pointed at it or them (default provider, default models, secondary-model
 * pool). Throws 40001 when the table is damaged.
 */
export function withdrawProvider(file: Table, id: string): void {
  const draft = new Draft(file)
  draft.withdraw(id)
  draft.close(file)
}
