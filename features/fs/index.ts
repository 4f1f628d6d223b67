/** Public face of the fs pack: its routes, and the border of a workspace for packs that touch files in one. */
export { linkTarget, missing, outside, Pin, pin, type Root, relativePath, rootAt, translated, withParent, withPin } from './boundary.ts'
export * from './contract.ts'
export * from './errors.ts'
export { rootOf } from './place.ts'
export * from './service.ts'
