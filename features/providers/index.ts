/** Public face of the providers pack. */
export * from './contract.ts'
export * from './service.ts'
