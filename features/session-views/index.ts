/** Public face of the session-views pack. */
export * from './contract.ts'
export * from './service.ts'
