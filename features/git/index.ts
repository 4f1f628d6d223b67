/** Public face of the git pack: its routes, and the pull requests of directories. */
export { GitUnavailable } from './command.ts'
export * from './contract.ts'
export { branchOf, GitCache, type GitFacts, type GitPorts, pullRequests } from './pull-requests.ts'
