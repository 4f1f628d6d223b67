/** Public face of the interactions pack. */
export * from './contract.ts'
export * from './service.ts'
