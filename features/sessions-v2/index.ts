/** Public face of the v2 session list. */
export * from './contract.ts'
