/** Public face of the providers pack. */

export * from './contract.ts'
export { type FoundModel, isSize, strings, textField } from './discovery.ts'
export { withdrawProvider, writeAliases } from './draft.ts'
export { FetchProblem, fetchJson } from './fetch.ts'
export { isModelName, isProviderId, saysEmbedding } from './names.ts'
export { costField } from './price.ts'
export { aliasOf } from './record-builder.ts'
export { type RegistryEntry, readRegistry } from './registry.ts'
export * from './service.ts'
export { askModelList } from './sources.ts'
export { isTable, putRows, rowsOf, type Table, without } from './tables.ts'
