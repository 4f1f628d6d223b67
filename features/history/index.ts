/** Public face of the history pack. */
export * from './service.ts'
