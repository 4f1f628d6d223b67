/** Public face of the sessions pack. */
export * from './service.ts'
