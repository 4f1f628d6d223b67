/** One request with its way back: what the pipeline asks of it, and the one that came over a connection. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { anonymous, type Principal } from '../access/principal.ts'
import type { RequestInfo } from '../contract.ts'
import type { Asker, Way } from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import { bodyMs, hasBody, jsonIn, limitedStream, readBody } from './body.ts'
import { type FileReply, type StreamReply, sendBinary } from './bytes.ts'
import { type AnswerText, LargeText } from './large-json.ts'

/** A request with its way back: over a connection, or from inside this process. */
export interface Exchange extends RequestInfo {
  /** When it began, on the clock of `performance.now()`. */
  readonly began: number
  /** Nobody waits for the answer any more. */
  readonly gone: boolean
  /** Headers are out: an error can only cut the answer. */
  readonly begun: boolean
  /** Aborts when the asker goes away before the answer is complete. */
  readonly signal: AbortSignal
  /** The JSON body; undefined without one. Rejects with a 40001. */
  body(limit: number): Promise<unknown>
  /** Makes `stream` ready for the handler of a `bodyType: 'stream'` route. Throws a 40001 for a body announced larger than `limit`. */
  openStream(limit: number | undefined): void
  /**
   * Answers with the text of an envelope; undefined: no body. A promise: it begins, or is given up, when that resolves; what fails afterwards
   * cuts the answer, and is told to `failed`.
   */
  send(status: number, text: AnswerText | undefined, failed?: (error: unknown) => void): Promise<void> | undefined
  /** Answers with bytes and resolves to the status. Rejects before anything is sent, or after having cut the answer. */
  sendBytes(reply: FileReply | StreamReply, signal: AbortSignal): Promise<number>
  /** Another server asked for this one's clients: it is not passed on again. */
  readonly relayed: boolean
  /**
   * Lets another server answer and resolves to the status; undefined: the request is this one's. `limit`: of a JSON body, which is kept for
   * another try (a 40001 when it is longer); undefined for a stream and for none.
   */
  relay(way: Way, limit: number | undefined): Promise<number | undefined>
  /** Ends the answer where it is. */
  cut(): void
}

/** Uploads: time without a single byte after which the connection is cut, ms. */
const idleMs = 300_000

/** An answer with more characters in long texts has no announced length. */
const wholeChars = 16 * 1024 * 1024

export class HttpExchange implements Exchange {
  readonly id: string
  readonly method: string
  /** Target as received, before normalisation. */
  readonly url: string
  readonly began = performance.now()
  /** Nobody until the gate has found out. */
  principal: Principal = anonymous
  readonly relayed: boolean
  readonly headers: IncomingHttpHeaders
  readonly remote_address: string | null
  stream: Readable
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  #gone: AbortController | undefined
  /** The JSON body, once it was read. */
  #held: Promise<Buffer | undefined> | undefined
  /** Bytes of an unread body up to which the connection is kept. */
  readonly #keepBytes: number

  /** `asker`: who asked the server that passes this on. */
  constructor(req: IncomingMessage, res: ServerResponse, env: Environment, asker?: Asker) {
    const given = req.headers['x-request-id']
    this.id = (given !== undefined && requestId(String(given))) || env.newId()
    this.method = req.method ?? ''
    this.url = req.url ?? ''
    this.relayed = asker !== undefined
    if (asker) this.principal = asker.principal
    this.headers = req.headers
    this.remote_address = asker ? asker.remote_address : (req.socket.remoteAddress ?? null)
    this.stream = req
    this.#req = req
    this.#res = res
    this.#keepBytes = env.options.bodyLimitBytes
  }

  get gone(): boolean {
    return this.#res.destroyed || (this.#res.socket ?? this.#req.socket).destroyed
  }

  get begun(): boolean {
    return this.#res.headersSent
  }

  get signal(): AbortSignal {
    if (this.#gone) return this.#gone.signal
    const gone = new AbortController()
    this.#gone = gone
    const res = this.#res
    const { socket } = this.#req
    const closed = () => {
      socket.off('close', closed)
      if (!res.writableFinished) gone.abort(developerError('client_gone'))
    }
    if (this.gone) closed()
    else {
      res.once('close', closed)
      socket.setMaxListeners(0).once('close', closed) // an answer whose turn has not come is not told
    }
    return gone.signal
  }

  async body(limit: number): Promise<unknown> {
    const bytes = await this.#bytes(limit)
    return bytes && jsonIn(bytes)
  }

  #bytes(limit: number): Promise<Buffer | undefined> {
    this.#held ??= readBody(this.#req, limit)
    return this.#held
  }

  openStream(limit: number | undefined): void {
    if (limit !== undefined) this.stream = limitedStream(this.#req, limit)
    const req = this.#req
    const res = this.#res
    const { socket } = req
    // A stalled upload does not hold its connection for ever; one that makes progress may take as long as it needs, and so may the answer.
    const cut = () => socket.destroy()
    socket.setTimeout(idleMs, cut)
    const over = () => {
      req.off('end', over)
      res.off('finish', over)
      socket.off('timeout', cut)
      socket.setTimeout(0)
    }
    req.once('end', over)
    // Before the server's own listener, which starts the keep-alive clock of the connection.
    res.prependOnceListener('finish', over)
  }

  send(status: number, text: AnswerText | undefined, failed?: (error: unknown) => void): Promise<void> | undefined {
    if (text instanceof LargeText) return this.#sendLarge(status, text, failed)
    if (text === undefined) {
      const end = this.#ending()
      this.#res.writeHead(status)
      end()
    } else {
      const last = text.length > shortChars ? Buffer.from(text) : text
      this.#begin(status, Buffer.byteLength(last))(last)
    }
    return undefined
  }

  /** Made before it is sent, so that its length can be told; one that would take much memory is made as the client takes it. */
  async #sendLarge(status: number, text: LargeText, failed?: (error: unknown) => void): Promise<void> {
    const whole = text.chars > wholeChars ? undefined : await text.made()
    if (this.gone) return
    const length = whole?.reduce((sum, part) => sum + part.length, 0)
    const finish = this.#begin(status, length)
    void pipeline(whole ?? text.parts(), this.#res, { end: false, signal: this.signal }).then(
      () => this.gone || finish(),
      error => {
        if (!this.gone) failed?.(error)
        this.cut()
      }
    )
  }

  /** Sends the headers. What is answered ends the answer, with its last text. */
  #begin(status: number, length: number | undefined): (last?: string | Buffer) => void {
    const res = this.#res
    const end = this.#ending()
    if (status === 401) res.setHeader('www-authenticate', 'Bearer')
    const type = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
    res.writeHead(status, length === undefined ? type : { ...type, 'content-length': length })
    return end
  }

  /** Called before the headers leave. What is answered ends the answer, and takes care of a body that was not read to its end. */
  #ending(): (last?: string | Buffer) => void {
    const req = this.#req
    const res = this.#res
    const isRead = req.complete || !hasBody(req) // as of now: a long answer may take longer than the rest of the body
    const keep = this.#mayKeep
    if (!keep) res.setHeader('connection', 'close')
    // The connection layer drops the body of a HEAD; text that comes with the end leaves in one write with the headers.
    return last => {
      if (keep) leave(() => res.end(last))
      else if (req.readableEnded) res.end(last)
      else if (last !== undefined) res.write(last)
      else res.flushHeaders()
      if (!isRead && !req.readableEnded) swallow(req, res, { keep, patient: this.#isKnown })
    }
  }

  sendBytes(reply: FileReply | StreamReply, signal: AbortSignal): Promise<number> {
    return sendBinary(reply, this.#req, this.#res, signal, this.#ending())
  }

  async relay(way: Way, limit: number | undefined): Promise<number | undefined> {
    const req = this.#req
    const res = this.#res
    const body = limit !== undefined ? await this.#bytes(limit) : hasBody(req) ? req : undefined
    const reply = await way.relay(this, body, this.signal)
    if (!reply) return undefined
    const keep = this.#mayKeep
    res.writeHead(reply.status, { ...reply.headers, ...(keep ? {} : { connection: 'close' }) })
    await pipeline(reply.body, res, { end: keep, signal: this.signal })
    if (!req.complete) swallow(req, res, { keep, patient: this.#isKnown })
    else if (!keep) res.end()
    return reply.status
  }

  /** The body was read, or is short enough to be swallowed. */
  get #mayKeep(): boolean {
    const announced = this.#req.headers['content-length']
    return this.#req.complete || !hasBody(this.#req) || Number(announced ?? Number.POSITIVE_INFINITY) <= this.#keepBytes
  }

  get #isKnown(): boolean {
    return this.principal !== anonymous
  }

  cut(): void {
    this.#res.destroy()
  }
}

/** Longer texts are encoded once; measuring one and leaving it to the connection encodes it twice. */
const shortChars = 16 * 1024

/** Echoed when it has 26 characters of Crockford base 32 in either case; the first of repeated values counts. */
function requestId(given: string): string | undefined {
  const first = given.split(',', 1)[0]!.trim()
  return /^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$/.test(first) ? first : undefined
}

/** How much of an unwanted body is swallowed, and for how long, so that the client gets to read the reply before the connection ends. */
const lingerBytes = 16 * 1_048_576
const lingerMs = 2_000
/** The same of a known client, however much it is, counted from its last byte, ms. */
const patientMs = 30_000

/**
 * Takes care of a body that nobody read to its end: one that may be kept is swallowed and the connection lives on; otherwise the reply, written
 * already, ends after the client had time to read it. A browser reads one with status 200 behind its whole body alone.
 */
function swallow(req: IncomingMessage, res: ServerResponse, { keep, patient }: { keep: boolean; patient: boolean }): void {
  let taken = 0
  const done = () => {
    clearTimeout(timer)
    req.off('data', count)
    if (!keep) res.end()
  }
  const count = (chunk: Buffer) => {
    taken += chunk.length
    if (keep) return // it is short, and its clock goes on until its end
    if (patient) timer.refresh()
    else if (taken > lingerBytes) done()
  }
  const timer = setTimeout(() => (keep ? req.destroy() : done()), keep ? bodyMs : patient ? patientMs : lingerMs)
  timer.unref()
  req.on('error', () => undefined) // 'close' follows
  req.once('close', done)
  req.once('end', done)
  req.unpipe() // whoever was to get it takes no more
  req.on('data', count)
  req.resume() // a stream that was led elsewhere stays paused, also for those who listen later
}

/** Answers behind the first one of a pass of the event loop, which leave together when it ends; undefined: none has left yet. */
let behind: (() => void)[] | undefined

/** Each call of the system wakes a client that sleeps, and takes several times as long as for one that is awake. */
function leave(end: () => void): void {
  if (behind) {
    behind.push(end)
    return
  }
  behind = []
  setImmediate(() => {
    const ends = behind ?? []
    behind = undefined
    for (const each of ends) each()
  })
  end()
}
