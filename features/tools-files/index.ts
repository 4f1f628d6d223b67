/** Public face of the tools-files pack: the file operations that its tools stand on, and their path rules. */
export { fileKind } from './file-kind.ts'
export { type FileFacts, type FileOps, nodeFileOps } from './file-ops.ts'
export { assertSame, locate, type Place, type PlacePorts, pathRule, refusal } from './places.ts'
