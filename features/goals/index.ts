/** Public face of the goals pack. */
export * from './contract.ts'
