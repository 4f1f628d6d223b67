/** Public face of the history pack. */
export { interruptedResult } from './project.ts'
export * from './service.ts'
