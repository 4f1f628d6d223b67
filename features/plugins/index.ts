/** Public face of the plugins pack. */
export * from './contract.ts'
export { DownloadProblem, downloadTo } from './download.ts'
export * from './service.ts'
