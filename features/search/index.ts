/** Public face of the search pack. */
export * from './contract.ts'
