/** Makes images small enough for models. sharp does it, where it is installed; it loads with the first image that does not fit. */
import { type ImageHeader, imageHeader } from './image-header.ts'

/** What is used of the package, so that the build does without it. */
interface Picture {
  autoOrient(): Picture
  extract(region: { left: number; top: number; width: number; height: number }): Picture
  resize(options: { width: number; height: number; fit: 'inside'; withoutEnlargement: boolean }): Picture
  flatten(options: { background: string }): Picture
  png(): Picture
  jpeg(options: { quality: number }): Picture
  toBuffer(): Promise<Buffer>
  metadata(): Promise<{ readonly autoOrient: { readonly width: number; readonly height: number } }>
}
type Sharp = (source: Buffer, options?: { limitInputPixels: number; failOn: 'error' }) => Picture

export interface Bounds {
  /** Longest edge, pixels. */
  readonly edge: number
  readonly bytes: number
}

/** A part of an image, in pixels of the original. */
export interface Region {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface Shown extends ImageHeader {
  readonly data: Buffer
}

/** An image cannot be brought into its bounds; the message is a sentence that people and models may read. */
export class ImageProblem extends Error {}

/** Images above this are not decoded, bytes and pixels. */
export const decodedBytes = 64 * 1024 * 1024
const decodedPixels = 100_000_000
const qualities = [80, 60, 40, 20]
const edges = [2000, 1000, 768, 512, 384, 256]

/** An image without a readable header counts by its bytes alone: whoever gets it judges it. */
export const fits = (header: ImageHeader | undefined, size: number, { edge, bytes }: Bounds): boolean =>
  size <= bytes && Math.max(header?.width ?? 0, header?.height ?? 0) <= edge

export class Recoder {
  readonly #load: () => Promise<Sharp | undefined>
  /** One image after the other: each may take hundreds of MB while it is decoded. */
  #queue: Promise<unknown> = Promise.resolve()

  constructor(load: () => Promise<Sharp | undefined> = loadSharp) {
    this.#load = load
  }

  /** Whether images can be made smaller here. */
  async isAble(): Promise<boolean> {
    return (await this.#load()) !== undefined
  }

  /** Its size as it is seen: photographs say how they are turned. */
  async turned(source: Buffer, { width, height }: ImageHeader): Promise<{ readonly width: number; readonly height: number }> {
    const sharp = await this.#load()
    try {
      return sharp ? (await sharp(source).metadata()).autoOrient : { width, height }
    } catch {
      return { width, height } // what cannot be decoded is refused where it would have to be
    }
  }

  /**
   * The image within its bounds: PNG as long as that fits, else JPEG of falling quality, then of falling size. Throws ImageProblem when it cannot
   * be decoded, when it is too large for that, or without sharp.
   */
  shrink(source: Buffer, bounds: Bounds, region?: Region): Promise<Shown> {
    const done = this.#queue.then(() => this.#shrink(source, bounds, region))
    this.#queue = done.catch(() => undefined) // the caller hears of it
    return done
  }

  async #shrink(source: Buffer, { edge, bytes }: Bounds, region: Region | undefined): Promise<Shown> {
    const sharp = await this.#load()
    if (!sharp) throw new ImageProblem('it cannot be made smaller here: the optional package sharp is not installed')
    if (source.length > decodedBytes) throw new ImageProblem('images above 64 MiB are not decoded')
    try {
      const turned = sharp(source, { limitInputPixels: decodedPixels, failOn: 'error' }).autoOrient()
      const { x: left, y: top, width, height } = region ?? { x: 0, y: 0, width: 0, height: 0 }
      let picture = region ? turned.extract({ left, top, width, height }) : turned
      for (const limit of [edge, ...edges.filter(each => each < edge)]) {
        const png = await picture.resize({ width: limit, height: limit, fit: 'inside', withoutEnlargement: true }).png().toBuffer()
        if (png.length <= bytes) return shown(png)
        for (const quality of qualities) {
          const jpeg = await sharp(png).flatten({ background: '#ffffff' }).jpeg({ quality }).toBuffer()
          if (jpeg.length <= bytes) return shown(jpeg)
        }
        picture = sharp(png) // the original is decoded once
      }
    } catch (cause) {
      throw new ImageProblem(`it could not be decoded (${oneLine(cause)})`, { cause })
    }
    throw new ImageProblem('it does not get small enough')
  }
}

function shown(data: Buffer): Shown {
  const header = imageHeader(data)
  if (!header) throw new ImageProblem('the result has no header')
  return { ...header, data }
}

const oneLine = (error: unknown) => (error instanceof Error ? error.message : String(error)).split('\n')[0]?.slice(0, 200) ?? ''

async function loadSharp(): Promise<Sharp | undefined> {
  try {
    const optional = 'sharp' // a variable, so that a missing optional dependency is no build error
    return ((await import(optional)) as { readonly default: Sharp }).default
  } catch {
    return undefined // not installed, or not for this machine
  }
}
