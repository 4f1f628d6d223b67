/** Public face of the subagents pack. */
export { Subagent, subagentCompleted, subagentFailed, subagentSpawned, subagentStarted, subagentSuspended } from './contract.ts'
export { readProfiles } from './profile-files.ts'
export * as subagentRecords from './records.ts'
export * from './service.ts'
export { modeRecord as swarmModeSet } from './swarm-mode.ts'
