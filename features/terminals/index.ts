/** Public face of the terminals pack. */
export * from './contract.ts'
