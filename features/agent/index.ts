/** Public face of the agent pack. */
export * from './contract.ts'
export { describe as engineErrorOf } from './engine-error.ts'
export { errorInfo } from './loop.ts'
export { inputText, ownParts } from './media.ts'
export { pause, retryDelay } from './retry.ts'
export * from './service.ts'
export { settingsRecord as agentSet } from './settings.ts'
export { type StatusFact, StatusFacts, type StatusPlace } from './status-facts.ts'
