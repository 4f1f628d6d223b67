/** A window of lines over a text that streams by; whatever the size of the text, memory stays small. */
import { headOf } from '../../kernel/index.ts'

/** Characters of a line that are kept. */
export const LINE_CHARS = 2_000
/** Lines of a window at most. */
export const WINDOW_LINES = 1_000

export interface Line {
  readonly number: number
  /** Without its line end; at most 2000 characters. */
  readonly text: string
  readonly cut: boolean
  /** A carriage return stood before the line feed. */
  readonly cr: boolean
}

/** Collects lines `offset`, `offset + 1`, ...; a negative offset counts from the end. Feed with `push`, then `end`. */
export class LineWindow {
  readonly #offset: number
  readonly #limit: number
  readonly #kept: Line[] = []
  #count = 0
  #current = ''
  #length = 0
  #endsWithCr = false
  #lf = 0
  #crlf = 0
  #loneCr = false

  constructor(offset: number, limit: number) {
    this.#offset = offset
    this.#limit = Math.min(limit, WINDOW_LINES)
  }

  get total(): number {
    return this.#count
  }

  /** Every line ends with CR LF. */
  get crlf(): boolean {
    return this.#crlf > 0 && this.#lf === 0 && !this.#loneCr
  }

  /** Carriage returns that a plain view would hide. */
  get mixed(): boolean {
    return this.#loneCr || (this.#crlf > 0 && this.#lf > 0)
  }

  push(text: string): void {
    const returns = text.includes('\r')
    const pieces = text.split('\n') // looking for one line end after the other costs ten times as much
    const last = pieces.length - 1
    for (let at = 0; at <= last; at++) {
      this.#extend(pieces[at]!, returns)
      if (at === last) return
      if (this.#endsWithCr) this.#crlf++
      else this.#lf++
      this.#close()
    }
  }

  /** Ends the text and returns the window. */
  end(): readonly Line[] {
    if (this.#length > 0) {
      if (this.#endsWithCr) this.#loneCr = true
      this.#close()
    }
    return (this.#offset < 0 ? this.#kept.slice(this.#offset) : this.#kept).slice(0, this.#limit)
  }

  /** `returns`: there may be carriage returns in it. */
  #extend(piece: string, returns: boolean): void {
    if (piece === '') return
    if (this.#endsWithCr) this.#loneCr = true
    this.#endsWithCr = returns && piece.endsWith('\r')
    if (returns && !this.#loneCr) this.#loneCr = piece.slice(0, -1).includes('\r')
    this.#length += piece.length
    const room = LINE_CHARS + 1 - this.#current.length
    if (room > 0 && this.#wanted()) this.#current += piece.slice(0, room)
  }

  /** Whether the line now being read belongs to the window, as far as is known. */
  #wanted(): boolean {
    const number = this.#count + 1
    return this.#offset < 0 || (number >= this.#offset && number < this.#offset + this.#limit)
  }

  #close(): void {
    if (this.#wanted()) {
      const length = this.#length - (this.#endsWithCr ? 1 : 0)
      this.#kept.push({
        number: this.#count + 1,
        text: headOf(this.#current, Math.min(length, LINE_CHARS)),
        cut: length > LINE_CHARS,
        cr: this.#endsWithCr
      })
      if (this.#offset < 0 && this.#kept.length > -this.#offset + WINDOW_LINES) this.#kept.splice(0, WINDOW_LINES)
    }
    this.#count++
    this.#current = ''
    this.#length = 0
    this.#endsWithCr = false
  }
}
