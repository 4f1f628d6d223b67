/** Public face of the workspaces pack. */
export * from './contract.ts'
export { Latest, type LatestOptions } from './latest.ts'
export { configuredDir, type FrontMatter, fieldOf, frontMatter, projectDirs, projectRoot } from './project.ts'
export { assertSpelled } from './root.ts'
export * from './service.ts'
