/**
 * One end of the channel between a pack's process and the server: calls with their answers, and what both ends know of each other by reference. What
 * one end has handed out stays until the other end has let go of it (its garbage collector tells).
 */
import { Readable } from 'node:stream'
import { type Shape, shapeOf, standIn } from './stand-in.ts'
import { type Answer, type Answers, Decoder, Encoder, type Mark, type Refs, Uncrossable } from './values.ts'

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

interface Exported {
  readonly value: object
  readonly answers: Answers | undefined
  count: number
  readonly undo?: (() => void) | undefined
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: unknown): void
  /** Signals that were handed over with the call. */
  readonly signals: readonly number[]
}

export interface PeerOptions {
  readonly wire: Wire
  /** What the other end calls by name. */
  readonly root: object
  /** This end is the server: its objects stay here and are asked. */
  readonly server: boolean
  /** A call without an answer failed. */
  readonly failed: (what: string, error: unknown) => void
}

/** More than this is no use of references any more, but a leak. */
const mostExports = 100_000

export class Peer implements Refs {
  readonly keepsObjects: boolean
  readonly #wire: Wire
  readonly #failed: PeerOptions['failed']
  readonly #exports = new Map<number, Exported>()
  readonly #ids = new WeakMap<object, number>()
  readonly #waiting = new Map<number, Waiting>()
  /** What stands for the other end's things: by number, and the number of each. */
  readonly #imports = new Map<number, WeakRef<object>>()
  readonly #numbers = new WeakMap<object, number>()
  readonly #taken = new Map<number, number>()
  readonly #controllers = new Map<number, AbortController>()
  readonly #shapes = new Map<string, number>()
  readonly #knownShapes: Shape[] = []
  readonly #gone: FinalizationRegistry<number>
  #next = 1
  #over: Error | undefined
  /** Signals handed over by the call that is being written. */
  #signals: number[] = []
  /** Runs when the list that is being written has ended. */
  #onEnd: (() => void) | undefined
  /** Signals that came with the call that is being read. */
  #open: number[] | undefined

  constructor({ wire, root, server, failed }: PeerOptions) {
    this.#wire = wire
    this.#failed = failed
    this.keepsObjects = server
    this.#exports.set(0, { value: root, answers: undefined, count: 1 })
    this.#gone = new FinalizationRegistry(id => this.#letGo(id))
  }

  /** What the other end calls by name, from now on. */
  set root(root: object) {
    this.#exports.set(0, { value: root, answers: undefined, count: 1 })
  }

  /** Calls that wait for their answer. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Calls something of the other end by its number; 0 and a name for a method of its root. `answers`: how functions among the arguments do. `kept`: gets the
   * signals among them, which live on then after the answer.
   */
  call(target: number, method: string | undefined, args: readonly unknown[], answers?: Answers, kept?: number[]): Promise<unknown> {
    if (this.#over) return Promise.reject(this.#over)
    const c = this.#next++
    try {
      const { value, bytes, signals } = this.#written(args, answers)
      kept?.push(...signals)
      return new Promise((resolve, reject) => {
        this.#waiting.set(c, { resolve, reject, signals: kept ? [] : signals })
        this.#wire.send({ c, t: target, ...(method === undefined ? {} : { m: method }), a: value }, bytes)
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Calls a method of something of the other end without standing still. */
  callOn(thing: object, method: string, args: readonly unknown[]): Promise<unknown> {
    const id = this.#numbers.get(thing)
    return id === undefined ? Promise.reject(new Error(`${method} is of this process`)) : this.call(id, method, args)
  }

  /** Nobody waits for the answer. */
  tell(target: number, method: string | undefined, args: readonly unknown[]): void {
    if (this.#over) return
    const { value, bytes } = this.#written(args)
    this.#wire.send({ t: target, ...(method === undefined ? {} : { m: method }), a: value }, bytes)
  }

  /** Stands still until the other end has answered: with a value, a throw, or a promise that settles later. */
  ask(
    target: number,
    member: { readonly method?: string | undefined; readonly property?: string },
    args: readonly unknown[],
    answers?: Answers
  ): unknown {
    if (this.#over || !this.#wire.ask) throw this.#over ?? new Error('this end cannot stand still')
    const c = this.#next++
    const { value, bytes, signals } = this.#written(args, answers)
    const { method, property } = member
    const m = {
      c,
      s: 1,
      t: target,
      ...(method === undefined ? {} : { m: method }),
      ...(property === undefined ? {} : { g: property }),
      a: value
    } as const
    const answer = this.#wire.ask(m, bytes)
    if (answer.message.p === 1) return new Promise((resolve, reject) => this.#waiting.set(c, { resolve, reject, signals }))
    this.#endSignals(signals)
    const decoder = new Decoder(this, answer.bytes)
    if (answer.message.e !== undefined) throw decoder.decode(answer.message.e)
    return decoder.decode(answer.message.v)
  }

  /** Takes a message of the other end. */
  receive(message: Message, bytes: readonly Uint8Array[]): void {
    if (message.r !== undefined) this.#answered(message, bytes)
    else if (message.t !== undefined) this.#called(message, bytes)
    else if (message.x !== undefined) {
      this.#controllers.get(message.x)?.abort(new Decoder(this, bytes).decode(message.v))
      this.#controllers.delete(message.x)
    }
    for (const [id, count] of message.d ?? []) this.#returned(id, count)
  }

  /** The other end is gone: every call fails with this. */
  end(error: Error): void {
    if (this.#over) return
    this.#over = error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
    for (const controller of this.#controllers.values()) controller.abort(error)
    this.#controllers.clear()
    for (const { undo } of this.#exports.values()) undo?.()
    this.#exports.clear()
  }

  mark(value: object, kind: 'function' | 'object' | 'iterable' | 'signal' | 'promise', path: string, answers: Answers | undefined): Mark {
    if (kind === 'function') return this.#functionMark(value as (...args: unknown[]) => unknown, path, answers)
    if (kind === 'signal') return this.#signalMark(value as AbortSignal)
    if (kind === 'iterable') {
      const id = this.#export(iteration(value as AsyncIterable<unknown>, this.#onEnd), undefined)
      return { $: 'g', id, ...(value instanceof Readable ? { r: 1 } : {}) }
    }
    if (kind === 'promise') return { $: 'p', id: this.#export(value, answers) }
    const shape = shapeOf(value)
    const key = JSON.stringify(shape)
    const known = this.#shapes.get(key)
    const id = this.#export(value, answers)
    if (known !== undefined) return { $: 'x', id, h: known }
    this.#shapes.set(key, this.#shapes.size)
    return { $: 'x', id, h: this.#shapes.size - 1, s: shape }
  }

  known(value: object): Mark | undefined {
    const id = this.#numbers.get(value)
    return id === undefined ? undefined : { $: 'h', id }
  }

  stand(mark: Mark): unknown {
    const id = Number(mark.id)
    switch (mark.$) {
      case 'h': {
        const entry = this.#exports.get(id)
        if (!entry) throw new Error('what was handed back is not there any more')
        return entry.value
      }
      case 'a':
        return this.#signal(id, mark)
      case 'p':
        return this.#promise(id)
      case 'g':
        return this.#iterable(id, mark.r === 1)
      case 'f':
        return this.#imported(id, () => this.#function(id, mark.k as Answer))
      case 'x': {
        if (mark.s) this.#knownShapes[Number(mark.h)] = mark.s as Shape
        const shape = this.#knownShapes[Number(mark.h)]
        if (shape)
          return this.#imported(id, () => standIn(shape, { call: (m, a) => this.call(id, m, a), ask: (one, a) => this.ask(id, one, a) }))
      }
    }
    throw new Error(`a mark of no known kind: ${mark.$}`)
  }

  /** One thing of the other end has one stand-in, so that it can be compared and be a key. */
  #imported(id: number, make: () => object): object {
    this.#taken.set(id, (this.#taken.get(id) ?? 0) + 1)
    const known = this.#imports.get(id)?.deref()
    if (known) return known
    const made = make()
    this.#imports.set(id, new WeakRef(made))
    this.#numbers.set(made, id)
    this.#gone.register(made, id)
    return made
  }

  #function(id: number, answer: Answer): (...args: unknown[]) => unknown {
    switch (answer) {
      case 'promise':
        return (...args) => this.call(id, undefined, args)
      case 'notify':
        return (...args) => this.tell(id, undefined, args)
      case 'iterable':
        return (...args) => this.#iterating(id, args)
      default:
        return (...args) => this.ask(id, {}, args)
    }
  }

  /** The list that a function of the other end answers with. What signals went with the call ends with the list. */
  #iterating(id: number, args: readonly unknown[]): AsyncIterable<unknown> {
    const begin = async () => {
      const signals: number[] = []
      const list = (await this.call(id, undefined, args, undefined, signals)) as AsyncIterable<unknown>
      return { signals, list: list[Symbol.asyncIterator]() }
    }
    const end = (signals: readonly number[]) => this.#endSignals(signals)
    return (async function* () {
      const { signals, list } = await begin()
      try {
        for (let next = await list.next(); next.done !== true; next = await list.next()) yield next.value
      } finally {
        await list.return?.()
        end(signals)
      }
    })()
  }

  /** Settles as the one of the other end does. */
  #promise(id: number): Promise<unknown> {
    this.#taken.set(id, (this.#taken.get(id) ?? 0) + 1)
    const settled = this.call(id, 'then', [])
    settled.catch(() => undefined) // whoever needs it waits for it
    this.#gone.register(settled, id)
    return settled
  }

  #iterable(id: number, asReadable: boolean): AsyncIterable<unknown> {
    this.#taken.set(id, (this.#taken.get(id) ?? 0) + 1)
    const list: AsyncIterable<unknown> = {
      [Symbol.asyncIterator]: () => ({
        next: () => this.call(id, 'next', []) as Promise<IteratorResult<unknown>>,
        return: () => this.call(id, 'return', []) as Promise<IteratorResult<unknown>>
      })
    }
    this.#gone.register(list, id)
    return asReadable ? Readable.from(list, { objectMode: false }) : list
  }

  #signal(id: number, { r }: Mark): AbortSignal {
    if (id === 0) return AbortSignal.abort(new Decoder(this, []).decode(r))
    const controller = new AbortController()
    this.#controllers.set(id, controller)
    this.#open?.push(id)
    return controller.signal
  }

  #functionMark(value: (...args: unknown[]) => unknown, path: string, answers: Answers | undefined): Mark {
    const kind = value.constructor.name
    if (this.keepsObjects) return { $: 'f', id: this.#export(value, undefined), k: kind === 'AsyncFunction' ? 'promise' : 'now' }
    const name = path.slice(path.lastIndexOf('.') + 1)
    const said = typeof answers === 'object' ? answers[name] : answers
    const found = said ?? (kind === 'AsyncFunction' ? 'promise' : kind === 'AsyncGeneratorFunction' ? 'iterable' : 'now')
    if (found === 'now')
      throw new Uncrossable(
        path,
        'must answer at once, which a pack in a process of its own cannot: only async functions can be handed over here'
      )
    return { $: 'f', id: this.#export(value, answers), k: found }
  }

  #signalMark(signal: AbortSignal): Mark {
    if (signal.aborted) return { $: 'a', id: 0, r: new Encoder(this).encode(signal.reason) }
    const abort = () => {
      const encoder = new Encoder(this)
      this.#wire.send({ x: id, v: encoder.encode(signal.reason) }, encoder.bytes)
    }
    const id = this.#next++
    signal.addEventListener('abort', abort, { once: true })
    this.#exports.set(id, { value: signal, answers: undefined, count: 1, undo: () => signal.removeEventListener('abort', abort) })
    this.#signals.push(id)
    return { $: 'a', id }
  }

  #export(value: object, answers: Answers | undefined): number {
    const before = this.#ids.get(value)
    const there = before === undefined ? undefined : this.#exports.get(before)
    if (there && before !== undefined) {
      there.count++
      return before
    }
    if (this.#exports.size >= mostExports) throw new Error(`more than ${mostExports} objects and functions are in use by the other process`)
    const id = this.#next++
    this.#exports.set(id, { value, answers, count: 1 })
    this.#ids.set(value, id)
    return id
  }

  #written(args: readonly unknown[], answers?: Answers) {
    const outer = this.#signals
    this.#signals = []
    try {
      const encoder = new Encoder(this, answers)
      const value = args.map((arg, at) => encoder.encode(arg, String(at)))
      return { value, bytes: encoder.bytes, signals: this.#signals }
    } finally {
      this.#signals = outer
    }
  }

  #endSignals(signals: readonly number[]): void {
    for (const id of signals) {
      this.#exports.get(id)?.undo?.()
      this.#exports.delete(id)
    }
  }

  #answered({ r, v, e }: Message, bytes: readonly Uint8Array[]): void {
    const waiting = this.#waiting.get(r!)
    if (!waiting) return
    this.#waiting.delete(r!)
    this.#endSignals(waiting.signals)
    const decoder = new Decoder(this, bytes)
    if (e !== undefined) waiting.reject(decoder.decode(e))
    else waiting.resolve(decoder.decode(v))
  }

  #called(message: Message, bytes: readonly Uint8Array[]): void {
    const { c, t, m, g, s } = message
    const signals: number[] = []
    const entry = this.#exports.get(t!)
    let answer: unknown
    try {
      if (!entry) throw new Error('what was called is not there any more')
      this.#open = signals
      const args = new Decoder(this, bytes).decode(message.a ?? []) as unknown[]
      this.#open = undefined
      answer = g === undefined ? callOf(entry.value, m)(...args) : (entry.value as Record<string, unknown>)[g]
    } catch (error) {
      this.#open = undefined
      this.#settle(message, signals, entry?.answers, undefined, error)
      return
    }
    if (!isThenable(answer)) {
      this.#settle(message, signals, entry.answers, answer)
      return
    }
    if (s === 1) this.#wire.answer?.({ r: c!, p: 1 }, [])
    const later = { ...message, s: undefined } as Message
    answer.then(
      value => this.#settle(later, signals, entry.answers, value),
      (error: unknown) => this.#settle(later, signals, entry.answers, undefined, error ?? new Error('rejected with nothing'))
    )
  }

  #settle({ c, s, m }: Message, signals: readonly number[], answers: Answers | undefined, value: unknown, error?: unknown): void {
    const over = () => {
      for (const id of signals) this.#controllers.delete(id)
    }
    const goesOn = typeof value === 'object' && value !== null && Symbol.asyncIterator in value
    if (!goesOn) over()
    if (c === undefined) {
      if (error !== undefined) this.#failed(m ?? 'a callback', error)
      return
    }
    if (this.#over) return
    const send = s === 1 ? this.#wire.answer?.bind(this.#wire) : this.#wire.send.bind(this.#wire)
    const fail = (problem: unknown) => {
      const encoder = new Encoder(this)
      send?.({ r: c, e: encoder.encode(problem instanceof Error ? problem : new Error(String(problem))) }, encoder.bytes)
    }
    if (error !== undefined) {
      fail(error)
      return
    }
    try {
      const encoder = new Encoder(this, answers)
      this.#onEnd = over
      const v = encoder.encode(value)
      send?.({ r: c, v }, encoder.bytes)
    } catch (problem) {
      fail(problem)
    } finally {
      this.#onEnd = undefined
    }
  }

  #returned(id: number, count: number): void {
    const entry = this.#exports.get(id)
    if (!entry || id === 0) return
    entry.count -= count
    if (entry.count > 0) return
    entry.undo?.()
    this.#exports.delete(id)
  }

  #letGo(id: number): void {
    if (this.#imports.get(id)?.deref()) return // it came again meanwhile
    const count = this.#taken.get(id) ?? 0
    this.#imports.delete(id)
    this.#taken.delete(id)
    if (count > 0 && !this.#over) this.#wire.send({ d: [[id, count]] }, [])
  }
}

/** A list that the other end reads item by item. */
function iteration(list: AsyncIterable<unknown>, ended: (() => void) | undefined) {
  let iterator: AsyncIterator<unknown> | undefined
  const begun = () => {
    iterator ??= list[Symbol.asyncIterator]()
    return iterator
  }
  return {
    async next() {
      try {
        const { done, value } = await begun().next()
        if (done === true) ended?.()
        return done === true ? { done } : { done: false, value }
      } catch (error) {
        ended?.()
        throw error
      }
    },
    async return() {
      ended?.()
      await begun().return?.()
      return { done: true }
    }
  }
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
