/** Public face of the catalog pack. */
export * from './contract.ts'
