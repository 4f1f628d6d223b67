/** From the bytes of an event stream to the parts of a decoder, also where servers write the stream loosely. */
import { createParser, type EventSourceParser } from 'eventsource-parser'
import { emptyAnswer, foreignAnswer, formatError, streamError, traceOf } from './errors.ts'
import type { LlmError, LlmPart } from './request.ts'
import { transportError } from './transport-errors.ts'
import { errorIn } from './upstream-failure.ts'
import { parseJson } from './wire-values.ts'

/** Characters of one event, bytes of one whole response. */
export interface StreamLimits {
  readonly event: number
  readonly response: number
}

/** An event is parsed in one go, and nothing else runs meanwhile. */
const defaultLimits: StreamLimits = { event: 4 * 1024 * 1024, response: 128 * 1024 * 1024 }

/** Turns the events of one response into parts. */
export interface EventDecoder {
  /** True once the answer is whole, even when the connection breaks off now. */
  readonly finished: boolean
  /** Appends the parts of one event. True: nothing that matters follows. Takes objects of every shape. */
  feed(event: object, parts: LlmPart[]): boolean | undefined
  /** Last parts of a whole answer; `finish` is the very last one. */
  end(trace_id: string | undefined): LlmPart[]
}

/** Of one response. */
export interface ReaderOptions {
  readonly decoder: EventDecoder
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Name of the host, for errors. */
  readonly where: string
  /** The error that an event reports, if it reports one. Default: its `error`, or itself when its type says so. */
  readonly failureOf?: (event: object) => unknown
  /** Corrects the class of an error that the provider stated in words of its own; `said` is its JSON (or text). */
  readonly judge?: (error: LlmError, said: string) => LlmError
  readonly limits?: StreamLimits
}

/** Lines that are no part of an event stream; each costs more than an event. */
const ODD_LINES = 1000
/** Text in front of the first event that is kept, in case it turns out to be an error. */
const HEAD_CHARACTERS = 16 * 1024

/** Reads one response; fed with its bytes, it answers the parts that they complete. */
export class EventReader {
  /** True after the last part: nothing that follows is looked at. */
  over = false
  readonly #options: ReaderOptions
  readonly #limits: StreamLimits
  readonly #utf8 = new TextDecoder()
  readonly #parser: EventSourceParser
  #parts: LlmPart[] = []
  #size = 0
  /** Undefined as soon as there was an event. */
  #head: string | undefined = ''
  #ending = false
  #odd = 0

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#limits = options.limits ?? defaultLimits
    this.#parser = createParser({
      maxBufferSize: this.#limits.event,
      onEvent: ({ event, data }) => this.#event(event, data.trim()),
      onError: ({ type, field, value }) => {
        // Unknown lines are allowed by the event stream format; only the size limit and an error in place of an event end the stream.
        if (type === 'max-buffer-size-exceeded')
          this.#fail(formatError('the provider sent an oversized stream event', this.#headers, false))
        else if (type === 'unknown-field' && field === 'error') this.#report(parseJson(value ?? '') ?? value, value ?? '')
        else if (++this.#odd > ODD_LINES) this.#fail(formatError('the provider sent something that is no event stream', this.#headers))
      }
    })
  }

  /** Parts that these bytes completed; the caller may change the list. */
  feed(bytes: Uint8Array): LlmPart[] {
    this.#size += bytes.length
    if (this.#size > this.#limits.response) this.#fail(formatError('the provider sent an oversized response', this.#headers, false))
    else this.#text(this.#utf8.decode(bytes, { stream: true }))
    return this.#take()
  }

  /** Last parts, after the body ended as it should. */
  end(): LlmPart[] {
    if (this.over) return []
    // Some servers forget the empty line behind their last event.
    this.#ending = true
    this.#parser.feed('\n\n')
    if (this.over) return this.#take()
    const { decoder, where } = this.#options
    if (decoder.finished) this.#finish()
    else this.#fail(this.#noEvents() ?? transportError(undefined, where, this.#headers))
    return this.#take()
  }

  /** Last parts, after the connection broke off with this error. */
  broken(error: unknown): LlmPart[] {
    if (this.over) return []
    const { decoder, where } = this.#options
    // After the finish reason the answer is whole, only the usage may be missing.
    if (decoder.finished) this.#finish()
    else this.#fail(transportError(error, where, this.#headers))
    return this.#take()
  }

  get #headers() {
    return this.#options.headers
  }

  #text(text: string): void {
    if (this.#head !== undefined && this.#head.length < HEAD_CHARACTERS) this.#head += text.slice(0, HEAD_CHARACTERS)
    this.#parser.feed(text)
  }

  #event(name: string | undefined, data: string): void {
    this.#head = undefined
    if (this.over || data === '') return
    if (data === '[DONE]') {
      this.#finish()
      return
    }
    const value = parseJson(data)
    if (typeof value !== 'object' || value === null) {
      // What was cut off at the end is no event yet.
      if (name === 'error') this.#report(data, data)
      else if (!this.#ending) this.#fail(formatError('the provider sent a stream event that is not JSON', this.#headers))
      return
    }
    const { decoder, failureOf = errorIn } = this.#options
    const event = name === undefined || 'type' in value ? value : { ...value, type: name }
    const failure = failureOf(event)
    if (failure) this.#report(failure, data)
    else if (decoder.feed(event, this.#parts)) this.#finish()
  }

  /** The body held no event at all: perhaps it says what is wrong. */
  #noEvents(): LlmError | undefined {
    if (this.#head === undefined) return undefined
    const text = this.#head.trim()
    if (text === '') return emptyAnswer(this.#headers)
    return answerError(parseJson(text), text, this.#options) ?? foreignAnswer('text', text, this.#headers)
  }

  #report(failure: unknown, said: string): void {
    const { judge = same } = this.#options
    this.#fail(judge(streamError(failure, this.#headers), said))
  }

  #fail(error: LlmError): void {
    if (this.over) return
    this.over = true
    this.#parts.push({ type: 'error', error })
  }

  #finish(): void {
    this.over = true
    this.#parts.push(...this.#options.decoder.end(traceOf(this.#headers).trace_id))
  }

  #take(): LlmPart[] {
    const parts = this.#parts
    this.#parts = []
    return parts
  }
}

/** The error that a JSON answer in place of a stream reports, if it does; `text` is the answer. */
export function answerError(
  value: unknown,
  text: string,
  { headers, judge = same }: Pick<ReaderOptions, 'headers' | 'judge'>
): LlmError | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value
  const failure = typeof first === 'object' && first !== null ? errorIn(first) : undefined
  return failure ? judge(streamError(failure, headers), text) : undefined
}

/** The error as it is: what `judge` does by default. */
export const same = (error: LlmError): LlmError => error
