/** Public face of the messages pack. */
export * from './contract.ts'
