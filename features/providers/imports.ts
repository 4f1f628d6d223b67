/** Writes whole providers that come from a directory or a registry, in one save. */
import { managed } from './changes.ts'
import { Draft } from './draft.ts'
import { aliasOf } from './record-builder.ts'
import { listedId, registryOf, withListedId } from './registry.ts'
import type { ImportedProvider } from './service.ts'
import { namesDefault, type Table, without } from './tables.ts'

/** What an import may touch beside the imported. */
interface ImportRules {
  /** URL of the registry that they all come from: other providers of that source go. */
  readonly registry?: string | undefined
  /** A default model is set although the file names none. */
  readonly hasDefault: boolean
}

/** What an import wrote: ids of its providers as they are here, and aliases in the order of their lists. */
interface Imports {
  readonly ids: readonly string[]
  readonly aliases: readonly string[]
}

/**
 * Records are rewritten (an absent key keeps the stored one, headers and other fields stay), aliases below the id are replaced, of their
 * old records only `overrides` stay. A provider of the registry that was renamed here keeps its name; one that is listed under this name
 * gets another one. Default pointers stay, but a missing default model becomes the first imported one. What a registry rewrites for the
 * first time loses its credentials: they were meant for another host. Aliases of other providers stay. Throws 40003.
 */
export function importProviders(file: Table, imported: readonly ImportedProvider[], { registry, hasDefault }: ImportRules): Imports {
  const draft = new Draft(file)
  const known = [...draft.providers()].filter(([, record]) => registry !== undefined && registryOf(record) === registry)
  const names = new Map(known.map(([id, record]) => [listedId(id, record), id]))
  const renamed = new Set(imported.flatMap(({ id }) => names.get(id) ?? []))
  const occupied = new Set([...draft.providers().keys(), ...imported.map(({ id }) => id)])
  const ids = imported.map(({ id }) => names.get(id) ?? (renamed.has(id) ? freeId(id, occupied) : id))
  for (const id of ids) {
    if (draft.record(id)?.oauth !== undefined) throw managed(id)
  }
  const listed = new Set(ids)
  for (const [id] of known) if (!listed.has(id)) draft.withdraw(id)
  for (const [at, one] of imported.entries()) {
    const id = ids[at]!
    const foreign = registry !== undefined && registryOf(draft.record(id)) !== registry
    draft.replace(id, one.models, foreign ? credentials : [])
    const record = withListedId(importedRecord(one, without(draft.record(id) ?? {}, foreign ? credentials : [])), one.id, id)
    if (typeof record.default_model === 'string' && draft.owner(record.default_model) === undefined) delete record.default_model
    draft.put(id, record)
  }
  draft.close(file, false)
  const aliases = imported.flatMap(({ models }, at) =>
    models.map(({ key }) => aliasOf(ids[at]!, key)).filter(alias => draft.owner(alias) === ids[at])
  )
  const [first] = aliases
  if (first !== undefined && !hasDefault && !namesDefault(file)) file.default_model = first
  return { ids, aliases }
}

function freeId(id: string, occupied: ReadonlySet<string>): string {
  let at = 2
  while (occupied.has(`${id}-${at}`)) at++
  return `${id}-${at}`
}

/** Fields of a provider or of a model's overrides that hold credentials. */
const credentials = ['api_key', 'env', 'custom_headers', 'oauth']

function importedRecord({ type, base_url, api_key, auth, source }: ImportedProvider, before: Table): Table {
  const replaced = [...(api_key === undefined ? [] : ['api_key']), ...(api_key || auth ? ['auth'] : [])]
  const kept = without(before, ['type', 'base_url', 'source', 'model_source', ...replaced])
  return { type, ...(base_url && { base_url }), ...(api_key ? { api_key } : auth && { auth }), ...kept, ...(source && { source }) }
}
