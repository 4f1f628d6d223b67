/** Public face of the instances pack: the running servers of a home. */
export { type Instance, listInstances } from './instances.ts'
