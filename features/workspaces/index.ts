/** Public face of the workspaces pack. */
export * from './contract.ts'
export * from './service.ts'
