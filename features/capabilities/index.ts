/** Public face of the capabilities pack. */
export * from './contract.ts'
export * from './service.ts'
