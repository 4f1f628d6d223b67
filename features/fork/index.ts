/** Public face of the fork pack. */
export * from './contract.ts'
