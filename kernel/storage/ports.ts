/**
 * The four persistence ports: what an engine of storage must offer (`storageSuite` of the testing door checks it), and the text of the values that
 * it keeps. Every promise of a change resolves only when the change would survive `kill -9` (and, where fsync is used, power loss).
 */
import type { Readable } from 'node:stream'
import type { Static, TSchema } from '@sinclair/typebox'
import type { StoreKind, StoreSpec } from '../contract.ts'
import { developerError } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { checker, problems } from '../schema.ts'
import { isRecord } from '../shapes.ts'
import { jsonOf } from '../text.ts'
import type { Fences } from './fences.ts'

/** What a kernel hands to an engine of storage or journals. */
export interface EngineEnvironment {
  /** Absolute path; made already, 0700. */
  readonly home: string
  /** Id of this run of the server. */
  readonly server_id: string
  readonly log: Logger
  /** Leases that guard files: an engine that keeps files asks them before a change counts. */
  readonly fences?: Fences
  now(): Date
  /** Monotonic ULID. */
  newId(): string
}

export type KvOp<V> = { readonly type: 'put'; readonly key: string; readonly value: V } | { readonly type: 'delete'; readonly key: string }

/** Ordered records by key. Shared by all server processes of one home. */
export interface KvStore<V> {
  get(key: string): Promise<V | undefined>
  has(key: string): Promise<boolean>
  put(key: string, value: V): Promise<void>
  delete(key: string): Promise<void>
  /** All or nothing. */
  batch(ops: readonly KvOp<V>[]): Promise<void>
  keys(): Promise<string[]>
  values(): Promise<V[]>
  entries(): Promise<[string, V][]>
}

/**
 * One JSON file per id, replaced atomically. Ids are relative paths of safe segments (`a/b`); anything else throws.
 * Unreadable or invalid files are quarantined (`<name>.damaged-<time>`) with a warning and count as absent; with `keepDamaged` of the
 * spec they stay where they are, and every use of them rejects with PersistenceFailed.
 */
export interface DocumentStore<V> {
  get(id: string): Promise<V | undefined>
  /** `guarded`: a lock that the caller holds keeps other processes away, so that none is taken for this write. */
  put(id: string, value: V, options?: { readonly guarded?: boolean }): Promise<void>
  /**
   * Read-modify-write, serialised per id within this process and against other processes. Returning undefined deletes; what is there
   * already is not written again.
   */
  update(id: string, change: (current: V | undefined) => V | undefined): Promise<V | undefined>
  delete(id: string): Promise<void>
  ids(): Promise<string[]>
}

/** A record and where it is. Positions rise from record to record; `delete` makes them void. */
export interface LogEntry<V> {
  readonly at: number
  /** Where the next record begins. */
  readonly next: number
  readonly value: V
}

/** Where appended records are. */
export interface LogPositions {
  /** Of each record, in order. */
  readonly at: readonly number[]
  /** Where the next record will begin. */
  readonly end: number
}

/** Positions of records (where they begin), or the end of the log. */
export interface LogRange {
  /** The first record wanted; default: the beginning. */
  readonly from?: number
  /** Not included; default: the end of what was appended before the call. */
  readonly to?: number
  /** Newest first. Default false. */
  readonly reverse?: boolean
}

/**
 * Append-only records per id (JSON lines). A torn tail is cut on open; a damaged line stays where it is and is skipped with a warning. A
 * record is at most 64 MiB of JSON.
 */
export interface LogStore<V> {
  /**
   * Resolves, when the records are on disk, to where each of them is; concurrent appends share one write (group commit). Order is the
   * call order, and records are written as they are at the call. Without records it makes nothing and tells the end.
   */
  append(id: string, ...records: V[]): Promise<LogPositions>
  read(id: string): Promise<V[]>
  /**
   * Records one after the other, with bounded memory and passes of the event loop in between, as the log was when the first of them was
   * asked for. A missing log has none and is not made. Rejects with PersistenceFailed when a position is neither that of a record nor
   * the end.
   */
  scan(id: string, range?: LogRange): AsyncIterable<LogEntry<V>>
  delete(id: string): Promise<void>
  ids(): Promise<string[]>
  /** Waits for appends in flight and releases the file handle of this id. */
  release(id: string): Promise<void>
}

export interface BlobInfo {
  readonly size: number
  readonly modified_at: Date
}

/** Files of bytes. A put becomes visible complete or not at all. */
export interface BlobStore {
  /** Throws BlobTooLarge when the source is longer than `maxBytes` (default: no bound); nothing is stored then. */
  put(id: string, source: Readable | Uint8Array, options?: { readonly maxBytes?: number }): Promise<BlobInfo>
  stat(id: string): Promise<BlobInfo | undefined>
  /** Both ends of a range are in it. Throws BlobMissing. */
  open(id: string, range?: { readonly start: number; readonly end: number }): Promise<Readable>
  delete(id: string): Promise<void>
  ids(): Promise<string[]>
}

/** The source was longer than `maxBytes`; nothing was stored. The pack that set the limit answers it with its own error. */
export class BlobTooLarge extends Error {
  constructor(maxBytes: number) {
    super(`more than ${maxBytes} bytes`)
    this.name = 'BlobTooLarge'
  }
}

/** `open` found no such blob. */
export class BlobMissing extends Error {
  constructor(id: string) {
    super(`no blob ${id}`)
    this.name = 'BlobMissing'
  }
}

/** The port that belongs to a store spec. */
export type StoreOf<S> =
  S extends StoreSpec<infer V extends TSchema, infer K extends StoreKind>
    ? K extends 'document'
      ? DocumentStore<Static<V>>
      : K extends 'log'
        ? LogStore<Static<V>>
        : K extends 'blob'
          ? BlobStore
          : KvStore<Static<V>>
    : never

/** Opens stores of one home. One instance per kernel. */
export interface Storage {
  /** Opens (once) the store of a spec. kv: `namespace` is the key prefix space; others: a directory, relative to the home. */
  open<S extends StoreSpec>(spec: S, place: { readonly namespace: string; readonly dir: string }): StoreOf<S>
  /** Waits for all writes and closes every handle. */
  close(): Promise<void>
}

/** What became of a stored text: a value, damage (with the reason), or a shape that only a newer program knows. */
export type Decoded<V> =
  | { readonly kind: 'value'; readonly value: V }
  | { readonly kind: 'damaged'; readonly reason: string }
  | { readonly kind: 'newer'; readonly reason: string }

export interface Codec<V> {
  /** Throws on a value that misses the store's schema: writing it would lose it at the next read. */
  encode(value: V): string
  decode(text: string): Decoded<V>
  /** What is damaged is not moved. */
  readonly keepsDamaged: boolean
}

/**
 * JSON text of the values of a store. A value of shape version 1 is stored as it is. From version 2 on, the text carries `$version` beside the
 * value's own fields (`{ "$version": 2, ... }`; what is not an object goes under `$value`), so old files need no rewrite to be told apart.
 */
export function codecOf<V>(spec: StoreSpec): Codec<V> {
  const current = spec.version ?? 1
  return {
    keepsDamaged: spec.keepDamaged ?? false,
    encode(value) {
      if (!checker(spec.value).Check(value)) throw developerError('store_value_bad', spec.name, misfit(spec, value))
      return JSON.stringify(current > 1 ? { $version: current, ...(isRecord(value) ? value : { $value: value }) } : value)
    },
    decode(text) {
      const parsed = jsonOf(text)
      if (parsed === undefined) return { kind: 'damaged', reason: 'not JSON' }
      const [stored, version] = splitVersion(parsed)
      if (version > current) return { kind: 'newer', reason: `shape version ${version}, known up to ${current}` }
      let value = stored
      if (version < current && spec.migrate) {
        try {
          value = spec.migrate(stored, version)
        } catch (error) {
          return {
            kind: 'damaged',
            reason: `migration from version ${version} failed: ${error instanceof Error ? error.message : 'unknown error'}`
          }
        }
      }
      if (checker(spec.value).Check(value)) return { kind: 'value', value: value as V }
      return { kind: 'damaged', reason: `misses its schema${misfit(spec, value)}` }
    }
  }
}

function misfit(spec: StoreSpec, value: unknown): string {
  const first = problems(spec.value, value)[0]
  return ` at ${first?.path || 'root'}: ${first?.message ?? 'unexpected value'}`
}

function splitVersion(parsed: unknown): [unknown, number] {
  if (!isRecord(parsed) || !Number.isSafeInteger(parsed.$version)) return [parsed, 1]
  const { $version, ...rest } = parsed
  return ['$value' in rest ? rest.$value : rest, $version as number]
}
