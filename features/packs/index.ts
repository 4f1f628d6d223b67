/** Public face of the packs pack: its routes and errors, and what a pack declares about itself. */
export * from './contract.ts'
export { factsOf } from './item.ts'
export { type Deployment, PackSource } from './source.ts'
