/** Public face of the providers pack. */

export { withdrawProvider, writeAliases } from './aliases.ts'
export * from './contract.ts'
export { type FoundModel, isSize, readModelList, strings, textField } from './discovery.ts'
export { FetchProblem, fetchJson, fetchText } from './fetch.ts'
export { aliasOf, isProviderId } from './form.ts'
export { costField } from './price.ts'
export { type RegistryEntry, readRegistry } from './registry.ts'
export * from './service.ts'
export { isTable, putRows, rowsOf, type Table, without } from './tables.ts'
