/** Public face of the messages pack. */
export * from './contract.ts'
export * from './service.ts'
