/** Public face of the providers pack. */
export * from './contract.ts'
export { type FoundModel, isSize, strings, textField } from './discovery.ts'
export { FetchProblem, fetchJson } from './fetch-json.ts'
export { isProviderId } from './form.ts'
export { type RegistryEntry, readRegistry } from './registry.ts'
export * from './service.ts'
