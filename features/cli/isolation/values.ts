/**
 * Values on their way between a pack's process and the server: JSON, with marks (`{"$": kind}`) for what it has no word for, and bytes
 * beside it. What cannot go as data (functions, objects with methods, signals, streams) goes as a reference, which `Refs` makes and takes.
 */
import { Readable } from 'node:stream'
import { asContributed, type BinaryReply, binary, type Answers as NamedAnswers } from '../../../kernel/index.ts'
import { type ErrorFacts, errorOf, factsOfError } from './errors.ts'

/** How a function of a pack answers when the server calls it; one that answers `now` cannot be called across processes. */
export type Answer = NamedAnswers[string]

/** How all functions answer, or each by the name under which it stands in what is handed over, and in what that answers. */
export type Answers = NamedAnswers | Answer

export type RefKind = 'function' | 'object' | 'iterable' | 'signal' | 'promise'

export interface Refs {
  /** The mark of a function, or of an object that stays where it is. Throws Uncrossable. */
  mark(value: object, kind: RefKind, path: string, answers: Answers | undefined): Mark
  /** The mark of what came from the other side and goes back; undefined for anything else. */
  known(value: object): Mark | undefined
  /** What stands for it on this side. */
  stand(mark: Mark): unknown
  /** Does what writes something that may not cross. */
  attempt<T>(work: () => T): T
  /** Objects with methods stay, and are asked from the other side; false: what they hold goes as data. */
  readonly keepsObjects: boolean
}

export interface Mark {
  readonly $: string
  readonly [key: string]: unknown
}

/** Something that cannot be had from another process, named by its place. */
export class Uncrossable extends Error {
  constructor(path: string, what: string) {
    super(`${path || 'it'} ${what}`)
    this.name = 'Uncrossable'
  }
}

/** A value that stays where it is, whatever it is made of. */
export class Kept {
  readonly value: object

  constructor(value: object) {
    this.value = value
  }
}

/** A declaration (route, event, store, schema): shared parts stay shared, so that shapes keep their names. */
export class Spec {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** A JSON body of 256 levels stands in what its handler gets. */
const deepest = 300
const binaryBrand = Object.getOwnPropertySymbols(binary({ file: '' }))[0]!

export class Encoder {
  readonly #refs: Refs
  readonly #answers: Answers | undefined
  /** Bytes of the value, in the order of their marks. */
  readonly bytes: Uint8Array[] = []
  /** Those that are being written. */
  readonly #errors = new Set<Error>()
  #shared: Map<object, number> | undefined

  constructor(refs: Refs, answers?: Answers) {
    this.#refs = refs
    this.#answers = answers
  }

  encode(value: unknown, path = '', depth = 0): unknown {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value
      case 'number':
        return Number.isFinite(value) ? value : { $: 'n', v: String(value) }
      case 'undefined':
        return { $: 'u' }
      case 'bigint':
        return { $: 'i', v: String(value) }
      case 'function':
        return this.#refs.known(value) ?? this.#refs.mark(value, 'function', path, this.#answers)
      case 'object':
        return value === null ? null : this.#object(value, path, depth)
      default:
        throw new Uncrossable(path, 'is a symbol, which means nothing in another process')
    }
  }

  #object(value: object, path: string, depth: number): unknown {
    if (depth > deepest) throw new Uncrossable(path, 'goes in circles, or too deep')
    const at = this.#shared?.get(value)
    if (at !== undefined) return { $: '&', i: at }
    const index = this.#shared?.size
    if (index !== undefined) this.#shared?.set(value, index)
    const inner = this.#inner(value, path, depth)
    return index === undefined ? inner : { $: '=', v: inner }
  }

  #inner(value: object, path: string, depth: number): unknown {
    if (Array.isArray(value)) return value.map((item, at) => this.encode(item, `${path}.${at}`, depth + 1))
    const mark = this.#refs.known(asContributed(value))
    if (mark) return mark
    const proto = Object.getPrototypeOf(value) as object | null
    if (proto === Object.prototype || proto === null) return this.#plain(value as Record<string, unknown>, path, depth)
    if (value instanceof Date) return { $: 'd', v: value.getTime() }
    if (value instanceof Uint8Array) return { $: 'b', i: this.bytes.push(value) - 1 }
    if (value instanceof Error) return { $: 'e', v: this.#error(value, path, depth) }
    if (value instanceof AbortSignal) return this.#refs.mark(value, 'signal', path, undefined)
    if (value instanceof Map) return { $: 'm', v: this.encode([...value], path, depth + 1) }
    if (value instanceof Set) return { $: 't', v: this.encode([...value], path, depth + 1) }
    if (value instanceof URL) return { $: 'l', v: value.href }
    if (value instanceof RegExp) return { $: 'r', v: value.source, f: value.flags }
    if (value instanceof Kept) return this.#refs.known(value.value) ?? this.#refs.mark(value.value, 'object', path, this.#answers)
    if (value instanceof Spec) return this.#spec(value.value, path, depth)
    if (value instanceof Readable || Symbol.asyncIterator in value) return this.#refs.mark(value, 'iterable', path, undefined)
    if (value instanceof Promise && this.#refs.keepsObjects) return this.#refs.mark(value, 'promise', path, undefined)
    if (value instanceof Promise) throw new Uncrossable(path, 'is a promise: await it first')
    if (this.#refs.keepsObjects) return this.#refs.mark(value, 'object', path, this.#answers)
    return this.#instance(value, path, depth)
  }

  #plain(value: Record<string | symbol, unknown>, path: string, depth: number): unknown {
    if (binaryBrand in value) return this.#reply((value as unknown as BinaryReply).reply, path, depth)
    const copy: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      if (this.#refs.keepsObjects && Object.getOwnPropertyDescriptor(value, key)?.get)
        return this.#refs.mark(value, 'object', path, this.#answers)
      const item = value[key]
      if (item !== undefined) set(copy, key, this.encode(item, path === '' ? key : `${path}.${key}`, depth + 1))
    }
    const symbols = Object.getOwnPropertySymbols(value)
    if (symbols.length === 0) return '$' in copy ? { $: 'o', v: copy } : copy
    if (Symbol.asyncIterator in value) return this.#refs.mark(value, 'iterable', path, undefined)
    const named = symbols.flatMap(symbol => {
      const key = Symbol.keyFor(symbol)
      return key === undefined ? [] : [[key, this.encode(value[symbol], path, depth + 1)]]
    })
    return { $: 'k', v: copy, s: Object.fromEntries(named) as unknown }
  }

  #reply(reply: BinaryReply['reply'], path: string, depth: number): unknown {
    if ('open' in reply && reply.open) throw new Uncrossable(`${path}.open`, 'is a handle of this process: give a stream in its place')
    return { $: 'y', v: this.#plain({ ...reply }, path, depth) }
  }

  /** What it carries beside its words comes along where it can: the error itself is heard in any case. */
  #error(error: Error, path: string, depth: number): unknown {
    if (this.#errors.has(error)) throw new Uncrossable(path, 'goes in circles')
    this.#errors.add(error)
    const { fields, cause, ...words } = factsOfError(error)
    const kept: Record<string, unknown> = {}
    const keep = (into: Record<string, unknown>, key: string, item: unknown) => {
      const encoded = () => this.encode(item, `${path}.${key}`, depth + 1)
      try {
        set(into, key, this.#refs.attempt(encoded))
      } catch (problem) {
        if (!(problem instanceof Uncrossable)) throw problem
      }
    }
    for (const [key, item] of Object.entries(fields)) keep(kept, key, item)
    const facts = this.encode(words, path, depth + 1) as Record<string, unknown>
    facts.fields = { $: 'o', v: kept }
    if (cause !== undefined) keep(facts, 'cause', cause)
    this.#errors.delete(error)
    return facts
  }

  #spec(value: unknown, path: string, depth: number): unknown {
    const outer = this.#shared
    this.#shared = new Map()
    const v = this.encode(value, path, depth + 1)
    this.#shared = outer
    return { $: 's', v }
  }

  /** An object of a class of the pack: what it holds, and those of its methods that somebody asks for. */
  #instance(value: object, path: string, depth: number): unknown {
    const { toJSON } = value as { toJSON?: () => unknown }
    if (typeof toJSON === 'function') return this.encode(toJSON.call(value), path, depth + 1)
    const copy: Record<string, unknown> = { ...value }
    const asked = typeof this.#answers === 'object' ? Object.keys(this.#answers) : []
    for (const name of asked) {
      const method = (value as Record<string, unknown>)[name]
      if (typeof method === 'function') copy[name] = method.bind(value)
    }
    return this.#plain(copy, path, depth)
  }
}

export class Decoder {
  readonly #refs: Refs
  readonly #bytes: readonly Uint8Array[]
  #shared: unknown[] | undefined

  constructor(refs: Refs, bytes: readonly Uint8Array[]) {
    this.#refs = refs
    this.#bytes = bytes
  }

  /** Changes the value in place. */
  decode(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length; at++) value[at] = this.decode(value[at])
      return value
    }
    const { $: kind } = value as Mark
    if (kind !== undefined) return this.#marked(value as Mark)
    const record = value as Record<string, unknown>
    for (const key of Object.keys(record)) {
      const item = record[key]
      if (typeof item === 'object' && item !== null) set(record, key, this.decode(item))
    }
    return record
  }

  #marked(mark: Mark): unknown {
    const { $: kind, v } = mark
    switch (kind) {
      case 'u':
        return undefined
      case 'n':
        return Number(v)
      case 'i':
        return BigInt(String(v))
      case 'd':
        return new Date(Number(v))
      case 'b':
        return this.#bytes[Number(mark.i)] ?? Buffer.alloc(0)
      case 'e':
        return errorOf(this.decode(v) as ErrorFacts)
      case 'm':
        return new Map(this.decode(v) as [unknown, unknown][])
      case 't':
        return new Set(this.decode(v) as unknown[])
      case 'l':
        return new URL(String(v))
      case 'r':
        return new RegExp(String(v), String(mark.f))
      case 'o':
        return this.#fields(v as Record<string, unknown>)
      case 'y':
        return binary(this.#fields(v as Record<string, unknown>) as never)
      case 'k':
        return this.#symbols(mark)
      case 's':
        return this.#spec(v)
      case '=':
        return this.#numbered(v)
      case '&':
        return this.#shared?.[Number(mark.i)]
      default:
        return this.#refs.stand(mark)
    }
  }

  #fields(record: Record<string, unknown>): Record<string, unknown> {
    for (const key of Object.keys(record)) set(record, key, this.decode(record[key]))
    return record
  }

  #symbols({ v, s }: Mark): unknown {
    const record = this.#fields(v as Record<string, unknown>) as Record<string | symbol, unknown>
    for (const [key, item] of Object.entries(s as Record<string, unknown>)) record[Symbol.for(key)] = this.decode(item)
    return record
  }

  #spec(v: unknown): unknown {
    const outer = this.#shared
    this.#shared = []
    const value = this.decode(v)
    this.#shared = outer
    return value
  }

  /** Numbered when they begin, as they were met; nothing refers to a part before that part is complete. */
  #numbered(v: unknown): unknown {
    const shared = this.#shared ?? []
    const at = shared.push(undefined) - 1
    shared[at] = this.decode(v)
    return shared[at]
  }
}

/** As JSON.parse does: `__proto__` is a key like others. */
function set(record: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(record, key, { value, configurable: true, enumerable: true, writable: true })
  else record[key] = value
}
