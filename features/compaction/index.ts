/** Public face of the compaction pack. */
export * from './contract.ts'
export { begun as compactionBegun, blocked as compactionBlockRecorded, cancelled as compactionCancelRecorded } from './records.ts'
export * from './service.ts'
