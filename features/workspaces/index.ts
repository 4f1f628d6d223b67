/** Public face of the workspaces pack. */
export * from './service.ts'
