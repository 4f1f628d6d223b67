/** Public face of the goals pack. */
export * from './contract.ts'
export { goalRecord as goalSet, goalTurn, snapshotOf as goalSnapshotOf } from './goal.ts'
