/** Public face of the fs pack: its routes, and the border of a workspace for packs that touch files in one. */
export { denied, linkTarget, missing, outside, Pin, pin, relativePath, translated, withParent, withPin } from './boundary.ts'
export * from './contract.ts'
export { fileReply, type ReplyOptions } from './download.ts'
export * from './errors.ts'
export * from './service.ts'
