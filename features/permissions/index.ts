/** Public face of the permissions pack. */
export * from './service.ts'
