/** How far the events of records were told: in the order of the records, and only what the event journal has on disk. */

/** A place in the event journal of the session. */
export interface Mark {
  readonly seq: number
  readonly epoch: string
}

/** Events of all records before the position `at` are in the event journal, up to the mark. */
export interface ToldUpTo extends Mark {
  readonly at: number
}

interface TellingEntry {
  end: number | undefined
  mark: Mark | undefined
}

export class Telling {
  readonly #given: () => Mark | undefined
  readonly #written: () => Mark | undefined
  #queue: TellingEntry[] = []
  #last: ToldUpTo | undefined
  #recorded: number
  #recordedMark: Mark | undefined

  /** `given`: the last number of the event journal; `written`: the last one on disk. `last`: what the records say. */
  constructor(given: () => Mark | undefined, written: () => Mark | undefined, last: ToldUpTo | undefined) {
    this.#given = given
    this.#written = written
    this.#last = last
    this.#recorded = last?.at ?? 0
    this.#recordedMark = last
  }

  /** Where the records end whose mark is on record. */
  get recorded(): number {
    return this.#recorded
  }

  /** Events of the session since the mark that is on record. */
  get since(): number {
    const { seq = 0, epoch } = this.#given() ?? {}
    return this.#recordedMark?.epoch === epoch ? seq - (this.#recordedMark?.seq ?? 0) : seq
  }

  get last(): ToldUpTo | undefined {
    return this.#last
  }

  /** Everything is told and written. */
  get idle(): boolean {
    this.#advance()
    return this.#queue.length === 0
  }

  /** Records were appended whose events come later. */
  begin(): TellingEntry {
    const entry: TellingEntry = { end: undefined, mark: undefined }
    this.#queue.push(entry)
    return entry
  }

  /** Their events are given to the journal; the records end at `end`. */
  done(entry: TellingEntry, end: number): void {
    entry.end = end
    entry.mark = this.#given()
  }

  /** They did not get on disk. */
  drop(entry: TellingEntry): void {
    this.#queue = this.#queue.filter(each => each !== entry)
  }

  /** While nothing waits to be told, what comes next is behind all that the event journal has on disk now. The records end at `end`. */
  rest(end: number): void {
    const written = this.#written()
    if (this.idle && written) this.#last = { at: end, ...written }
  }

  /** The mark to put on record; undefined when it has not moved. */
  next(): ToldUpTo | undefined {
    this.#advance()
    if (!this.#last || this.#last.at <= this.#recorded) return undefined
    this.#recorded = this.#last.at
    this.#recordedMark = this.#last
    return this.#last
  }

  #advance(): void {
    const written = this.#written()
    for (let first = this.#queue[0]; first?.end !== undefined; first = this.#queue[0]) {
      const { end, mark } = first
      // A journal that began anew lost what it had not written: nobody can be told it twice.
      if (mark && written && mark.epoch === written.epoch && mark.seq > written.seq) return
      if (mark) this.#last = { at: end, ...mark }
      this.#queue.shift()
    }
  }
}
