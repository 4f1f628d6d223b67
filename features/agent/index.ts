/** Public face of the agent pack. */
export * from './contract.ts'
export * from './service.ts'
export { type StatusFact, StatusFacts, type StatusPlace } from './status-facts.ts'
