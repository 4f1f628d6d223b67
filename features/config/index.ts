/** Public face of the config pack. */
export * from './service.ts'
