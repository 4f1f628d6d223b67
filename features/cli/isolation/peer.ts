/** One end of the channel between a pack's process and the server: calls with their answers. */
import { References } from './references.ts'
import { type Answers, Decoder, Encoder } from './values.ts'

/** A message; `d`: references that were let go, with how often they had been sent. */
export interface Message {
  /** Number of a call that wants an answer. */
  readonly c?: number
  /** Of the thing that is called, 0: the root; `m`: its method; `g`: its property, which is asked for. */
  readonly t?: number
  readonly m?: string
  readonly g?: string
  readonly a?: unknown
  /** The caller stands still until it is answered. */
  readonly s?: 1
  /** Number of the call that is answered, with `v` or the error `e`; `p`: a promise, which settles later. */
  readonly r?: number
  readonly v?: unknown
  readonly e?: unknown
  readonly p?: 1
  /** A signal that aborts. */
  readonly x?: number
  readonly d?: readonly (readonly [number, number])[]
  /** A beat, and its answer: bytes of memory. */
  readonly b?: number
}

/** How messages leave this end. */
export interface Wire {
  send(message: Message, bytes: readonly Uint8Array[]): void
  /** Answers a caller that stands still. */
  answer?(message: Message, bytes: readonly Uint8Array[]): void
  /** Sends a call and stands still until it is answered. */
  ask?(message: Message, bytes: readonly Uint8Array[]): { readonly message: Message; readonly bytes: readonly Uint8Array[] }
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: unknown): void
  /** Signals that were handed over with the call. */
  readonly signals: readonly number[]
}

interface PeerOptions {
  readonly wire: Wire
  /** What the other end calls by name. */
  readonly root: object
  /** This end is the server: its objects stay here and are asked. */
  readonly server: boolean
  /** A call of the other end was answered; so many bytes of calls are not yet. */
  readonly settled?: (bytes: number) => void
  /** A call without an answer failed. */
  readonly failed: (what: string, error: unknown) => void
}

/** Memory that a waiting call takes beside its message, as it is counted, bytes. */
const callBytes = 1024

export class Peer {
  readonly #wire: Wire
  readonly #failed: PeerOptions['failed']
  readonly #settled: PeerOptions['settled']
  readonly #refs: References
  readonly #waiting = new Map<number, Waiting>()
  #next = 1
  #load = 0
  #over: Error | undefined

  constructor({ wire, root, server, failed, settled }: PeerOptions) {
    this.#wire = wire
    this.#settled = settled
    this.#failed = failed
    this.#refs = new References(server, {
      call: (...given) => this.call(...given),
      tell: (...given) => this.tell(...given),
      ask: (...given) => this.ask(...given),
      abort: (x, v, bytes) => this.#send({ x, v }, bytes),
      drop: (id, count) => this.#send({ d: [[id, count]] }, [])
    })
    this.#refs.root = root
  }

  /** What the other end calls by name, from now on. */
  set root(root: object) {
    this.#refs.root = root
  }

  /** Bytes of calls of the other end that are not answered yet. */
  get load(): number {
    return this.#load
  }

  /**
   * Calls something of the other end by its number; 0 and a name for a method of its root. `answers`: how functions among the arguments do.
   * `kept`: gets the signals among them, which live on then after the answer.
   */
  call(target: number, method: string | undefined, args: readonly unknown[], answers?: Answers, kept?: number[]): Promise<unknown> {
    if (this.#over) return Promise.reject(this.#over)
    const c = this.#next++
    try {
      const { signals } = this.#sent(args, answers, (a, bytes) => this.#wire.send({ c, t: target, m: method, a }, bytes))
      kept?.push(...signals)
      return new Promise((resolve, reject) => this.#waiting.set(c, { resolve, reject, signals: kept ? [] : signals }))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Calls a method of something of the other end without standing still. */
  callOn(thing: object, method: string, args: readonly unknown[]): Promise<unknown> {
    const id = this.#refs.numberOf(thing)
    return id === undefined ? Promise.reject(new Error(`${method} is of this process`)) : this.call(id, method, args)
  }

  /** Nobody waits for the answer. */
  tell(target: number, method: string | undefined, args: readonly unknown[]): void {
    if (this.#over) return
    this.#sent(args, undefined, (a, bytes) => this.#wire.send({ t: target, m: method, a }, bytes))
  }

  /** Stands still until the other end has answered: with a value, a throw, or a promise that settles later. */
  ask(
    target: number,
    member: { readonly method?: string | undefined; readonly property?: string },
    args: readonly unknown[],
    answers?: Answers
  ): unknown {
    const wire = this.#wire
    if (this.#over || !wire.ask) throw this.#over ?? new Error('this end cannot stand still')
    const c = this.#next++
    const asked = { c, s: 1, t: target, m: member.method, g: member.property } as const
    const { value: answer, signals } = this.#sent(args, answers, (a, bytes) => wire.ask!({ ...asked, a }, bytes))
    if (answer.message.p === 1) return new Promise((resolve, reject) => this.#waiting.set(c, { resolve, reject, signals }))
    this.#refs.endWritten(signals)
    const decoder = new Decoder(this.#refs, answer.bytes)
    if (answer.message.e !== undefined) throw decoder.decode(answer.message.e)
    return decoder.decode(answer.message.v)
  }

  /** Takes a message of the other end. */
  receive(message: Message, bytes: readonly Uint8Array[], size = 0): void {
    if (message.r !== undefined) this.#answered(message, bytes)
    else if (message.t !== undefined) this.#called(message, bytes, size)
    else if (message.x !== undefined) this.#refs.aborted(message.x, new Decoder(this.#refs, bytes).decode(message.v))
    for (const [id, count] of message.d ?? []) this.#refs.returned(id, count)
  }

  /** The other end is gone: every call fails with this. */
  end(error: Error): void {
    if (this.#over) return
    this.#over = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
    this.#refs.end(error)
  }

  #send(message: Message, bytes: readonly Uint8Array[]): void {
    if (!this.#over) this.#wire.send(message, bytes)
  }

  /** What cannot be sent leaves nothing at the signals that it had. */
  #sent<T>(args: readonly unknown[], answers: Answers | undefined, send: (args: unknown, bytes: readonly Uint8Array[]) => T) {
    const encoder = new Encoder(this.#refs, answers)
    const encoded = () => args.map((arg, at) => encoder.encode(arg, String(at)))
    return this.#refs.writing(() => send(encoded(), encoder.bytes))
  }

  #answered({ r, v, e }: Message, bytes: readonly Uint8Array[]): void {
    const waiting = this.#waiting.get(r!)
    if (!waiting) return
    this.#waiting.delete(r!)
    this.#refs.endWritten(waiting.signals)
    const decoder = new Decoder(this.#refs, bytes)
    if (e !== undefined) waiting.reject(decoder.decode(e))
    else waiting.resolve(decoder.decode(v))
  }

  #called(message: Message, bytes: readonly Uint8Array[], size: number): void {
    const { c, t, m, g, s } = message
    const entry = this.#refs.exported(t!)
    const work: Work = { message, answers: entry?.answers, signals: [] }
    let answer: unknown
    try {
      if (!entry) throw new Error('what was called is not there any more')
      const { value: args, signals } = this.#refs.reading(() => new Decoder(this.#refs, bytes).decode(message.a ?? []) as unknown[])
      work.signals = signals
      answer = g === undefined ? callOf(entry.value, m)(...args) : (entry.value as Record<string, unknown>)[g]
    } catch (error) {
      this.#fail(work, error)
      return
    }
    if (!isThenable(answer)) {
      this.#settle(work, answer)
      return
    }
    if (s === 1) this.#wire.answer?.({ r: c!, p: 1 }, [])
    work.later = true
    this.#load += size + callBytes
    const over = () => {
      this.#load -= size + callBytes
      this.#settled?.(this.#load)
    }
    answer
      .then(
        value => this.#settle(work, value),
        (error: unknown) => this.#fail(work, error)
      )
      .finally(over)
  }

  #settle(work: Work, value: unknown): void {
    const over = () => this.#refs.endRead(work.signals)
    if (!(typeof value === 'object' && value !== null && Symbol.asyncIterator in value)) over() // a list may go on
    if (work.message.c === undefined) return
    try {
      const encoder = new Encoder(this.#refs, work.answers)
      const { value: v } = this.#refs.writing(() => encoder.encode(value), over)
      this.#answer(work, { r: work.message.c, v }, encoder.bytes)
    } catch (problem) {
      this.#fail(work, problem)
    }
  }

  #fail(work: Work, error: unknown): void {
    const { c, m } = work.message
    this.#refs.endRead(work.signals)
    if (c === undefined) {
      this.#failed(m ?? 'a callback', error)
      return
    }
    const encoder = new Encoder(this.#refs)
    const e = encoder.encode(error instanceof Error ? error : new Error(String(error)))
    this.#answer(work, { r: c, e }, encoder.bytes)
  }

  /** A caller that stands still reads another channel than the one that is heard in its own time. */
  #answer({ message, later }: Work, answer: Message, bytes: readonly Uint8Array[]): void {
    if (this.#over) return
    if (message.s === 1 && !later) this.#wire.answer?.(answer, bytes)
    else this.#wire.send(answer, bytes)
  }
}

/** A call of the other end that is being answered. */
interface Work {
  readonly message: Message
  readonly answers: Answers | undefined
  /** Signals that came with it. */
  signals: readonly number[]
  /** It was said that the answer is a promise. */
  later?: boolean
}

function callOf(value: object, method: string | undefined): (...args: unknown[]) => unknown {
  if (method === undefined) return value as (...args: unknown[]) => unknown
  const found = (value as Record<string, unknown>)[method]
  if (typeof found !== 'function') throw new Error(`there is no ${method}`)
  return found.bind(value) as (...args: unknown[]) => unknown
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
