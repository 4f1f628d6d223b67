/** Public face of the tools pack: the service types, the route, and the rules that tool packs share. */
export { isUserAbort } from './abort.ts'
export { type Bounds, boundText, CUT_MARK } from './bound-text.ts'
export { listTools, ToolEntry } from './contract.ts'
export { compilePathGlob, compileText, matchPath, matchText, meansTool } from './glob.ts'
export { KeptText } from './kept-text.ts'
export {
  absolutePath,
  belongsToHome,
  isBelowUser,
  isInside,
  isProtected,
  isSensitive,
  leadsOffLimits,
  leadsTo,
  plansDir,
  type Surroundings,
  withoutLinks
} from './paths.ts'
export { mayChange } from './schedule.ts'
export { isSecretLink, linkedSecrets, secretLinks } from './secret-links.ts'
export * from './service.ts'
export * from './tool.ts'
