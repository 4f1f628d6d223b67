/** Public face of the agent pack. */
export * from './contract.ts'
export * from './service.ts'
