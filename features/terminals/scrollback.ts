/** The last output of a terminal, in numbered frames: bounded in frames and in bytes. */
export interface OutputFrame {
  /** From 1. */
  readonly seq: number
  readonly data: string
  readonly at: string
}

export class Scrollback {
  readonly #maxFrames: number
  readonly #maxBytes: number
  #frames: OutputFrame[] = []
  /** Frames before this index were dropped. */
  #from = 0
  #bytes = 0
  #seq = 0

  constructor(maxFrames: number, maxBytes: number) {
    this.#maxFrames = maxFrames
    this.#maxBytes = maxBytes
  }

  /** Of the newest frame, or 0. */
  get seq(): number {
    return this.#seq
  }

  add(data: string, at: string): OutputFrame {
    const frame = { seq: ++this.#seq, data, at }
    this.#frames.push(frame)
    this.#bytes += data.length
    while (this.#frames.length - this.#from > this.#maxFrames || (this.#bytes > this.#maxBytes && this.#frames.length - this.#from > 1)) {
      this.#bytes -= this.#frames[this.#from++]!.data.length
    }
    if (this.#from * 2 > this.#frames.length) {
      this.#frames = this.#frames.slice(this.#from) // else what was dropped stays in memory
      this.#from = 0
    }
    return frame
  }

  clear(): void {
    this.#frames = []
    this.#from = 0
    this.#bytes = 0
  }

  /** Kept frames behind `seq`. */
  since(seq: number): readonly OutputFrame[] {
    const oldest = this.#seq - (this.#frames.length - this.#from) + 1
    return this.#frames.slice(this.#from + Math.max(0, seq - oldest + 1))
  }
}
