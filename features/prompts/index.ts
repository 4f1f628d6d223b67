/** Public face of the prompts pack. */
export * from './contract.ts'
export * from './service.ts'
