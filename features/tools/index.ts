/** Public face of the tools pack. */
export * from './service.ts'
