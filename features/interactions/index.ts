/** Public face of the interactions pack. */
export * from './service.ts'
