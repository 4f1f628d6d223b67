/** Public face of the sessions pack. */
export * from './contract.ts'
export * from './service.ts'
export { lastPromptOf, titleOf } from './title.ts'
export { statusOf } from './work.ts'
