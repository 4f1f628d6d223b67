/** Public face of the meta pack: its routes. */
export * from './contract.ts'
