/** Public face of the media pack. */
export { type ImageLimits, imageSection } from './contract.ts'
export { mediaTypeOf } from './image-header.ts'
export { ToolImages } from './tool-images.ts'
