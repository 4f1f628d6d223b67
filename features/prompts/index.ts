/** Public face of the prompts pack. */
export * from './contract.ts'
export { checkMessageMedia, checkUploads, commitMedia, type MediaPorts } from './media.ts'
export * from './service.ts'
