/** Public face of the plugins pack. */
export * from './contract.ts'
export * from './service.ts'
