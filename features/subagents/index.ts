/** Public face of the subagents pack. */
export { Subagent, subagentCompleted, subagentFailed, subagentSpawned, subagentStarted, subagentSuspended } from './contract.ts'
export * from './service.ts'
