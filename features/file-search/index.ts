/** Public face of the file-search pack. */
export { anyGlob } from './globs.ts'
export { holdsRules, IgnoreRules, VCS_DIRS } from './ignore-rules.ts'
