/** Public face of the transcript pack. */
export * from './contract.ts'
export type * from './shapes.ts'
export { Timeline } from './timeline.ts'
