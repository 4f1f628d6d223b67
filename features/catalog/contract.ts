/** Wire of the catalog pack (contract 1, Model directory entry, import_catalog, import_registry). Pure data. */
import { defineRoute, errorSpec, milliseconds, named, nullable, type Static, Type } from '../../kernel/index.ts'
import { ProviderItem, ProviderManaged, ProviderType } from '../providers/index.ts'

/** `details.reason` says why, in a word that machines know. */
export const NotImportable = errorSpec('entry_not_importable', 40004, 'the directory entry cannot be imported', 200, {
  details: Type.Object({ reason: Type.String() })
})
/** It cannot be fetched or read, or lists nothing that can be imported. */
export const RegistryUnusable = errorSpec('registry_unusable', 40005, 'the registry cannot be imported')
/** The answer at hand and the live directory do not know the id. */
export const EntryMissing = errorSpec('entry_missing', 40417, 'no such entry in the model directory')
/** There is neither a live answer nor a snapshot. */
export const DirectoryUnavailable = errorSpec('directory_unavailable', 50004, 'the model directory is unavailable')

/** One provider of the directory (contract 1, Model directory entry). */
export const DirectoryEntry = named(
  'CatalogEntry',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    wire_type: nullable(ProviderType),
    guessed: Type.Boolean({ description: 'The wire protocol is a guess' }),
    needs_base_url: Type.Boolean({ description: 'An import must bring a base_url' }),
    rejected: Type.Boolean({ description: 'Cannot be imported' }),
    reject_reason: nullable(Type.String({ description: 'unknown-explicit-type or proprietary-sdk' })),
    env_key: nullable(Type.String({ description: 'Usual environment variable of the key' })),
    models: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.Optional(Type.String()),
        max_context_size: Type.Integer({ minimum: 1, description: 'Tokens' }),
        capabilities: Type.Optional(Type.Array(Type.String())),
        reasoning: Type.Boolean()
      })
    )
  })
)
export type DirectoryEntry = Static<typeof DirectoryEntry>

/** Deployment options. */
export const Options = Type.Object({
  directory: Type.String({
    default: 'off',
    description: 'URL of the live model directory when SVC_CODE_CATALOG_URL names none; off: none'
  }),
  snapshot: Type.Boolean({ default: true, description: 'Answer from the built-in directory when there is no live one' }),
  patience_ms: milliseconds({
    minimum: 1,
    default: 3_000,
    description: 'How long a client waits for the live directory while there is another answer'
  }),
  timeout_ms: milliseconds({ minimum: 1, default: 10_000, description: 'How long a directory or a registry may take for its answer' })
})

const count = Type.Integer({ minimum: 0, description: 'Aliases written' })
const base = '/api/v1/catalog/providers'

export const listCatalog = defineRoute({
  method: 'GET',
  path: base,
  summary: 'The model directory, in its own order',
  data: Type.Object({ items: Type.Array(DirectoryEntry) }),
  errors: [DirectoryUnavailable]
})
export const readCatalogEntry = defineRoute({
  method: 'GET',
  path: `${base}/{catalog_id}`,
  summary: 'One entry of the model directory',
  params: Type.Object({ catalog_id: Type.String({ minLength: 1 }) }),
  data: DirectoryEntry,
  errors: [EntryMissing, DirectoryUnavailable]
})
export const importCatalog = defineRoute({
  method: 'POST',
  operationId: 'importCatalogProvider',
  path: '/api/v1/providers:import_catalog',
  summary: 'Import a directory entry as a provider, or refresh one that was imported',
  body: Type.Object({
    catalog_id: Type.String({ minLength: 1, description: 'Id from the directory' }),
    id: Type.Optional(Type.String({ description: 'Local provider id; default: the catalog_id' })),
    api_key: Type.Optional(Type.String({ description: 'Omitted: a stored key is kept' })),
    base_url: Type.Optional(Type.String({ description: 'Overrides the endpoint of the entry' }))
  }),
  data: Type.Object({ provider: ProviderItem, models_imported: count }),
  errors: [ProviderManaged, NotImportable, EntryMissing, DirectoryUnavailable],
  status: 201
})
export const importRegistry = defineRoute({
  method: 'POST',
  operationId: 'importRegistry',
  path: '/api/v1/providers:import_registry',
  summary: 'Import every provider of a private registry',
  description: 'Again: providers that the registry no longer lists are removed. The URL is the identity of the registry.',
  body: Type.Object({
    url: Type.String({ minLength: 1, description: 'http(s) address of its api.json' }),
    api_key: Type.Optional(Type.String({ description: 'Bearer key; omitted: that of the earlier import' }))
  }),
  data: Type.Object({ providers: Type.Array(ProviderItem), models_imported: count }),
  errors: [ProviderManaged, RegistryUnusable],
  status: 201
})
