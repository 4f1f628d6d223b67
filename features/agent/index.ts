/** Public face of the agent pack. */
export * from './service.ts'
