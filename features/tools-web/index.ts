/** Public face of the tools-web pack: it offers tools only. */
export { fetchParameters, searchParameters } from './contract.ts'
