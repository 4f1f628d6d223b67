/**
 * What both ends of the channel know of each other by reference: functions, objects of the server, signals, lists, promises. What one end
 * has handed out stays until the other end has let go of it (its garbage collector tells).
 */
import { Readable } from 'node:stream'
import { listed } from './lists.ts'
import { type Shape, shapeOf, standIn } from './stand-in.ts'
import { type Answer, type Answers, Decoder, Encoder, type Mark, type RefKind, type Refs, Uncrossable } from './values.ts'

interface Exported {
  readonly value: object
  readonly answers: Answers | undefined
  count: number
  readonly undo?: (() => void) | undefined
}

/** How the other end is reached; `kept`: gets the signals of a call, which live on after its answer. */
interface Reach {
  call(target: number, method: string | undefined, args: readonly unknown[], answers?: Answers, kept?: number[]): Promise<unknown>
  tell(target: number, method: string | undefined, args: readonly unknown[]): void
  ask(target: number, member: { readonly method?: string; readonly property?: string }, args: readonly unknown[]): unknown
  /** A signal aborts there, too. */
  abort(id: number, reason: unknown, bytes: readonly Uint8Array[]): void
  /** What was sent so often is not needed here any more. */
  drop(id: number, count: number): void
}

/** More than this is no use of references any more, but a leak. */
const mostExports = 100_000

export class References implements Refs {
  readonly keepsObjects: boolean
  readonly #reach: Reach
  readonly #exports = new Map<number, Exported>()
  readonly #ids = new WeakMap<object, number>()
  /** What stands for the other end's things: by number, and the number of each. */
  readonly #imports = new Map<number, WeakRef<object>>()
  readonly #numbers = new WeakMap<object, number>()
  readonly #taken = new Map<number, number>()
  readonly #controllers = new Map<number, AbortController>()
  readonly #shapes = new Map<string, number>()
  readonly #knownShapes: Shape[] = []
  readonly #gone = new FinalizationRegistry<number>(id => this.#letGo(id))
  #next = 1
  /** Signals handed over by the call that is being written. */
  #written: number[] = []
  /** Signals that came with the call that is being read. */
  #read: number[] = []
  /** Runs when the list that is being written has ended. */
  #onEnd: (() => void) | undefined

  /** `server`: the objects of this end stay here and are asked. */
  constructor(server: boolean, reach: Reach) {
    this.keepsObjects = server
    this.#reach = reach
  }

  /** What the other end calls by name, from now on. */
  set root(root: object) {
    this.#exports.set(0, { value: root, answers: undefined, count: 1 })
  }

  exported(id: number): Exported | undefined {
    return this.#exports.get(id)
  }

  /** The number at the other end of what stands for something of it. */
  numberOf(thing: object): number | undefined {
    return this.#numbers.get(thing)
  }

  /** Writes with `work`; answers what it does, and the signals that went with it. */
  writing<T>(work: () => T, onEnd?: () => void): { readonly value: T; readonly signals: readonly number[] } {
    const [written, ended] = [this.#written, this.#onEnd]
    this.#written = []
    this.#onEnd = onEnd
    try {
      const value = this.attempt(work)
      return { value, signals: this.#written }
    } catch (error) {
      this.endWritten(this.#written) // nothing of it is sent
      throw error
    } finally {
      this.#written = written
      this.#onEnd = ended
    }
  }

  /** When `work` throws, the other end gets nothing of what it wrote, and knows no shape from it. */
  attempt<T>(work: () => T): T {
    const known = this.#shapes.size
    try {
      return work()
    } catch (error) {
      for (const shape of [...this.#shapes.keys()].slice(known)) this.#shapes.delete(shape)
      throw error
    }
  }

  /** Reads with `work`; answers what it does, and the signals that came with it. */
  reading<T>(work: () => T): { readonly value: T; readonly signals: readonly number[] } {
    this.#read = []
    const value = work()
    return { value, signals: this.#read }
  }

  /** Signals of this end that nobody there needs any more. */
  endWritten(signals: readonly number[]): void {
    for (const id of signals) {
      this.#exports.get(id)?.undo?.()
      this.#exports.delete(id)
    }
  }

  /** Signals of the other end that nobody here needs any more. */
  endRead(signals: readonly number[]): void {
    for (const id of signals) this.#controllers.delete(id)
  }

  /** A signal of the other end aborts. */
  aborted(id: number, reason: unknown): void {
    this.#controllers.get(id)?.abort(reason)
    this.#controllers.delete(id)
  }

  /** The other end is gone. */
  end(error: Error): void {
    for (const controller of this.#controllers.values()) controller.abort(error)
    this.#controllers.clear()
    for (const { undo } of this.#exports.values()) undo?.()
    this.#exports.clear()
  }

  /** The other end let go of something that it was sent so often. */
  returned(id: number, count: number): void {
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
    if (count > 0) this.#reach.drop(id, count)
  }

  mark(value: object, kind: RefKind, path: string, answers: Answers | undefined): Mark {
    if (kind === 'function') return this.#functionMark(value as (...args: unknown[]) => unknown, path, answers)
    if (kind === 'signal') return this.#signalMark(value as AbortSignal)
    if (kind === 'iterable') {
      const id = this.#export(listed(value as AsyncIterable<unknown>, this.#onEnd), undefined)
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
          return this.#imported(id, () =>
            standIn(shape, { call: (m, a) => this.#reach.call(id, m, a), ask: (one, a) => this.#reach.ask(id, one, a) })
          )
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
        return (...args) => this.#reach.call(id, undefined, args)
      case 'notify':
        return (...args) => this.#reach.tell(id, undefined, args)
      case 'iterable':
        return (...args) => this.#iterating(id, args)
      default:
        return (...args) => this.#reach.ask(id, {}, args)
    }
  }

  /** The list that a function of the other end answers with. What signals went with the call ends with the list. */
  #iterating(id: number, args: readonly unknown[]): AsyncIterable<unknown> {
    const end = (signals: readonly number[]) => this.endWritten(signals)
    const begin = async () => {
      const signals: number[] = []
      try {
        const list = (await this.#reach.call(id, undefined, args, undefined, signals)) as AsyncIterable<unknown>
        return { signals, list: list[Symbol.asyncIterator]() }
      } catch (error) {
        end(signals)
        throw error
      }
    }
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
    const settled = this.#reach.call(id, 'then', [])
    settled.catch(() => undefined) // whoever needs it waits for it
    this.#gone.register(settled, id)
    return settled
  }

  #iterable(id: number, asReadable: boolean): AsyncIterable<unknown> {
    this.#taken.set(id, (this.#taken.get(id) ?? 0) + 1)
    const list: AsyncIterable<unknown> = {
      [Symbol.asyncIterator]: () => ({
        next: () => this.#item(list, id, 'next'),
        return: () => this.#item(list, id, 'return')
      })
    }
    this.#gone.register(list, id)
    return asReadable ? Readable.from(list, { objectMode: false }) : list
  }

  /** `_list` keeps the list alive while an item of it is waited for: once it is collected, the other end lets go of it. */
  #item(_list: object, id: number, method: 'next' | 'return'): Promise<IteratorResult<unknown>> {
    return this.#reach.call(id, method, []) as Promise<IteratorResult<unknown>>
  }

  #signal(id: number, { r }: Mark): AbortSignal {
    if (id === 0) return AbortSignal.abort(new Decoder(this, []).decode(r))
    const controller = new AbortController()
    this.#controllers.set(id, controller)
    this.#read.push(id)
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
      this.#reach.abort(id, encoder.encode(signal.reason), encoder.bytes)
    }
    const id = this.#next++
    signal.addEventListener('abort', abort, { once: true })
    this.#exports.set(id, { value: signal, answers: undefined, count: 1, undo: () => signal.removeEventListener('abort', abort) })
    this.#written.push(id)
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
}
