/** Worker: brings one image into its bounds. Runs in its own thread, because sharp alone takes longer to load than the event loop may stand still. */
import { parentPort, workerData } from 'node:worker_threads'

/** What is used of the package, so that the build does without it. */
interface Picture {
  autoOrient(): Picture
  extract(region: { left: number; top: number; width: number; height: number }): Picture
  resize(options: { width: number; height: number; fit: 'inside'; withoutEnlargement: boolean }): Picture
  flatten(options: { background: string }): Picture
  png(): Picture
  jpeg(options: { quality: number }): Picture
  toBuffer(): Promise<Buffer>
  metadata(): Promise<{ readonly autoOrient: Size }>
}
interface Sharp {
  (source: Uint8Array, options?: { limitInputPixels: number; failOn: 'error' }): Picture
  concurrency(threads: number): void
}

export interface Bounds {
  /** Longest edge, pixels. */
  readonly edge: number
  readonly bytes: number
}

/** A part of an image, in pixels of the original as it is seen. */
export interface Region {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

interface Size {
  readonly width: number
  readonly height: number
}

export interface RecodeTask {
  readonly source: Uint8Array
  readonly bounds: Bounds
  readonly region: Region | undefined
}

export type RecodeAnswer =
  /** `original`: its size as it is seen; photographs say how they are turned. */
  { readonly data: Uint8Array; readonly original: Size } | { readonly problem: string }

const decodedPixels = 100_000_000
const qualities = [80, 60, 40, 20]
const edges = [2000, 1000, 768, 512, 384, 256]

async function recode({ source, bounds, region }: RecodeTask): Promise<RecodeAnswer> {
  const optional = 'sharp' // a variable, so that a missing optional dependency is no build error
  const { default: sharp } = (await import(optional)) as { readonly default: Sharp }
  sharp.concurrency(1) // the others have work to do, too
  const input = sharp(source, { limitInputPixels: decodedPixels, failOn: 'error' })
  const { autoOrient: original } = await input.metadata()
  const { x: left = 0, y: top = 0, width = 0, height = 0 } = region ?? {}
  if (left + width > original.width || top + height > original.height)
    return { problem: `the region leads out of it (${original.width}x${original.height} px)` }
  let picture = region ? input.autoOrient().extract({ left, top, width, height }) : input.autoOrient()
  for (const edge of [bounds.edge, ...edges.filter(each => each < bounds.edge)]) {
    const png = await picture.resize({ width: edge, height: edge, fit: 'inside', withoutEnlargement: true }).png().toBuffer()
    if (png.length <= bounds.bytes) return { data: png, original }
    for (const quality of qualities) {
      const jpeg = await sharp(png).flatten({ background: '#ffffff' }).jpeg({ quality }).toBuffer()
      if (jpeg.length <= bounds.bytes) return { data: jpeg, original }
    }
    picture = sharp(png) // the original is decoded once
  }
  return { problem: 'it does not get small enough' }
}

const oneLine = (error: unknown) => (error instanceof Error ? error.message : String(error)).split('\n')[0]?.slice(0, 200) ?? ''

const answer = await recode(workerData as RecodeTask).catch(
  (error: unknown): RecodeAnswer => ({ problem: `it could not be decoded (${oneLine(error)})` })
)
parentPort?.postMessage(answer)
