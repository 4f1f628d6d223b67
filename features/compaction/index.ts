/** Public face of the compaction pack. */
export * from './contract.ts'
export * from './service.ts'
