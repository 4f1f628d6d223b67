/** Public face of the api-docs pack: its routes. */
export * from './contract.ts'
