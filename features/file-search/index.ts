/** Public face of the file-search pack: its routes, and the engine, globs and ignore rules for packs that search or list files. */
export * from './contract.ts'
export {
  cutAround,
  type FileMatches,
  type GrepEnd,
  type GrepRequest,
  type ListRequest,
  type Partial,
  type Row,
  SEARCH_BYTES,
  type SearchEngine
} from './engine.ts'
export { anyGlob, globOf } from './globs.ts'
export { canHold, heldAt, openPath } from './held.ts'
export { IgnoreRules, isNamed, rulesAmong } from './ignore-rules.ts'
export { searchEngine } from './machine.ts'
export { directoryOf, type Root, rootAt, rootOf } from './place.ts'
export { runBehind } from './priority.ts'
export { smallText } from './small-text.ts'
export { lookBehind } from './special-files.ts'
