/** What a terminal prints, as texts for frames: gathered for a moment, decoded once. */
import { readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import type { IPty } from 'node-pty'
import { descriptorOf, isFile } from './descriptor.ts'

/** Bytes of one frame. */
const frameBytes = 64 * 1024
/** Output after a pause goes out with the end of the pass of the event loop; what follows within so many ms goes out together. */
const frameMs = 5
/** A read that gave so much says that more is there. */
const floodBytes = 1024

export class OutputReader {
  readonly #pty: IPty
  readonly #print: (text: string) => void
  readonly #decoder = new StringDecoder('utf8')
  /** What was read and not printed: so many bytes of a buffer that is made with the first output. */
  #bytes: Buffer | undefined
  #filled = 0
  #scheduled = false
  #flushedAt = -Infinity
  #ended = false

  /**
   * Where the terminal is a file, a character of what `pty` gives is made a byte: opened for bytes, it would not know that they are UTF-8
   * (`iutf8`), and Backspace would erase half a letter.
   */
  constructor(pty: IPty & { setEncoding?(encoding: 'latin1'): void }, print: (text: string) => void) {
    this.#pty = pty
    this.#print = print
    const encoding = isFile(pty) ? 'latin1' : 'utf8'
    if (encoding === 'latin1') pty.setEncoding?.(encoding)
    pty.onData(data => this.#read(Buffer.from(data, encoding)))
  }

  /** Prints what was read. */
  flush(): void {
    if (this.#filled === 0 || !this.#bytes) return
    this.#flushedAt = performance.now()
    const text = this.#decoder.write(this.#bytes.subarray(0, this.#filled))
    this.#filled = 0
    if (text !== '') this.#print(text) // else the beginning of a character
  }

  /** Prints the rest; what comes later is left out. */
  end(): void {
    if (this.#ended) return
    this.flush()
    const rest = this.#decoder.end()
    if (rest !== '') this.#print(rest)
    this.#ended = true
    this.#bytes = undefined
  }

  #read(data: Buffer): void {
    if (this.#ended) return
    for (let at = 0; at < data.length; ) {
      this.#bytes ??= Buffer.allocUnsafeSlow(frameBytes)
      const taken = data.copy(this.#bytes, this.#filled, at)
      this.#filled += taken
      at += taken
      if (this.#filled === frameBytes) this.flush()
    }
    if (data.length >= floodBytes) this.#readOn()
    if (this.#filled >= frameBytes / 2) this.flush()
    else if (this.#filled > 0) this.#schedule()
  }

  /**
   * Reads what is there by now, as far as it fits the frame: a system gives some 4 KB at a time, and waiting for the next event costs as much as
   * reading. Only where it is known that nobody waits for what is not there.
   */
  #readOn(): void {
    const fd = descriptorOf(this.#pty)
    if (process.platform !== 'linux' || fd === undefined || !this.#bytes) return
    try {
      for (let read = 1; read > 0 && this.#filled < frameBytes; this.#filled += read)
        read = readSync(fd, this.#bytes, this.#filled, frameBytes - this.#filled, null)
    } catch {
      // nothing more, or the end: the next event says which
    }
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const flush = () => {
      this.#scheduled = false
      this.flush()
    }
    const quiet = performance.now() - this.#flushedAt
    if (quiet >= frameMs) setImmediate(flush)
    else setTimeout(flush, frameMs - quiet)
  }
}
