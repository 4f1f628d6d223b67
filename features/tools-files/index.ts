/** Public face of the tools-files pack: the file operations that its tools stand on. */
export { type FileFacts, type FileOps, nodeFileOps } from './file-ops.ts'
