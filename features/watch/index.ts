/** Public face of the watch pack. */
export * from './contract.ts'
export * from './service.ts'
