/** Public face of the undo pack. */
export * from './contract.ts'
