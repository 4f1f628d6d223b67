/** The body of an answer, piece by piece: without the promises and listeners that an iterator of a stream takes for each of them. */
import type { Readable } from 'node:stream'

/** What may wait to be read before a body is asked to stop. */
const INCOMING_BYTES = 64 * 1024

/** A body as it comes; it stays open when it is left, so that the connection can serve the next request. */
export class Incoming {
  readonly #body: Readable
  #pieces: Uint8Array[] = []
  #size = 0
  /** Nothing more will come; with why, when it broke off. */
  #end: { readonly error?: unknown } | undefined
  #wake: () => void = () => undefined

  constructor(body: Readable) {
    this.#body = body
    body.on('data', this.#came).on('end', this.#ended).on('error', this.#broke).on('close', this.#closed)
    if (body.errored) this.#broke(body.errored)
    else if (body.destroyed) this.#closed()
  }

  /** What has come; undefined: nothing. */
  take(): Uint8Array | undefined {
    const [first, ...more] = this.#pieces
    if (!first) return undefined
    this.#pieces = []
    this.#size = 0
    if (this.#body.isPaused()) this.#body.resume()
    return more.length === 0 ? first : Buffer.concat([first, ...more])
  }

  /** What comes next; undefined: it has ended. Rejects when it breaks off. */
  async coming(): Promise<Uint8Array | undefined> {
    while (this.#pieces.length === 0 && !this.#end) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    if (this.#pieces.length === 0 && this.#end?.error !== undefined) throw this.#end.error
    return this.take()
  }

  leave(): void {
    this.#body.off('data', this.#came).off('end', this.#ended).off('error', this.#broke).off('close', this.#closed)
    // The answer is complete or has failed already: what happens to the rest of it changes nothing.
    this.#body.on('error', () => undefined)
    this.#over({})
  }

  readonly #came = (bytes: Uint8Array): void => {
    this.#pieces.push(bytes)
    this.#size += bytes.length
    if (this.#size > INCOMING_BYTES) this.#body.pause()
    this.#wake()
  }

  readonly #ended = (): void => this.#over({})
  readonly #broke = (error: unknown): void => this.#over({ error })
  readonly #closed = (): void => this.#over({ error: Object.assign(new Error('Premature close'), { code: 'ERR_STREAM_PREMATURE_CLOSE' }) })

  #over(end: { readonly error?: unknown }): void {
    this.#end ??= end
    this.#wake()
  }
}
