/** Public face of the export pack. */
export * from './contract.ts'
