/** Public face of the debug pack. */
export * from './contract.ts'
