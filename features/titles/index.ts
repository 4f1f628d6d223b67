/** Public face of the titles pack. */
export * from './contract.ts'
