/** Makes images small enough for models. sharp does it, where it is installed, in a worker that lives as long as one image needs. */
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { inOrder } from '../../kernel/index.ts'
import { type ImageHeader, imageHeader } from './image-header.ts'
import type { Bounds, RecodeAnswer, RecodeTask, Region } from './recode-worker.ts'

export type { Bounds, Region }

export interface Shown extends ImageHeader {
  readonly data: Buffer
  /** Pixels, as it is seen: photographs say how they are turned. */
  readonly original: { readonly width: number; readonly height: number }
}

/** An image cannot be brought into its bounds; the message is a sentence that people and models may read. */
export class ImageProblem extends Error {}

/** Images above this are not decoded; nor are those above 100 megapixels. */
export const decodedBytes = 64 * 1024 * 1024
/** How long one image may take. */
const limitMs = 60_000

/** An image without a readable header counts by its bytes alone: whoever gets it judges it. */
export const fits = (header: ImageHeader | undefined, size: number, { edge, bytes }: Bounds): boolean =>
  size <= bytes && Math.max(header?.width ?? 0, header?.height ?? 0) <= edge

export class Recoder {
  readonly #installed: () => boolean
  /** One image after the other: each may take hundreds of MB while it is decoded. */
  readonly #queued = inOrder()

  /** `installed`: whether there is something that makes images smaller. */
  constructor(installed: () => boolean = hasSharp) {
    this.#installed = installed
  }

  /** Whether images can be made smaller here. */
  isAble(): boolean {
    return this.#installed()
  }

  /**
   * The image within its bounds: PNG as long as that fits, else JPEG of falling quality, then of falling size. Throws ImageProblem when it cannot
   * be decoded, when it is too large for that, or without sharp.
   */
  async shrink(source: Buffer, bounds: Bounds, region?: Region): Promise<Shown> {
    if (!this.isAble()) throw new ImageProblem('it cannot be made smaller here: the optional package sharp is not installed')
    if (source.length > decodedBytes) throw new ImageProblem('images above 64 MiB are not decoded')
    const answer = await this.#queued(() => run({ source, bounds, region }))
    if ('problem' in answer) throw new ImageProblem(answer.problem)
    const data = Buffer.from(answer.data.buffer, answer.data.byteOffset, answer.data.byteLength)
    const header = imageHeader(data)
    if (!header) throw new ImageProblem('the result has no header')
    return { ...header, data, original: answer.original }
  }
}

function run(task: RecodeTask): Promise<RecodeAnswer> {
  return new Promise(resolve => {
    const worker = new Worker(new URL(`./recode-worker${extname(import.meta.url)}`, import.meta.url), { workerData: task })
    const finish = (answer: RecodeAnswer) => {
      clearTimeout(timer)
      void worker.terminate()
      resolve(answer)
    }
    const timer = setTimeout(() => finish({ problem: 'decoding it takes too long' }), limitMs)
    worker.once('message', finish)
    worker.once('error', () => finish({ problem: 'it could not be decoded' })) // out of memory
  })
}

function hasSharp(): boolean {
  try {
    return createRequire(import.meta.url).resolve('sharp') !== ''
  } catch {
    return false // not installed
  }
}
