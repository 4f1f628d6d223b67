/** Public face of the fs-host pack. */
export * from './contract.ts'
