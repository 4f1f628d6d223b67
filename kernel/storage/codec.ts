/**
 * JSON text of stored values. A value of shape version 1 is stored as it is. From version 2 on, the text carries `$version` beside the
 * value's own fields (`{ "$version": 2, ... }`; what is not an object goes under `$value`), so old files need no rewrite to be told apart.
 */
import type { StoreSpec } from '../contract.ts'
import { developerError } from '../errors.ts'
import { checker, problems } from '../schema.ts'

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

export function codecOf<V>(spec: StoreSpec): Codec<V> {
  const current = spec.version ?? 1
  return {
    keepsDamaged: spec.keepDamaged ?? false,
    encode(value) {
      if (!checker(spec.value).Check(value)) throw developerError('store_value_bad', spec.name, misfit(spec, value))
      return JSON.stringify(current > 1 ? withVersion(value, current) : value)
    },
    decode(text) {
      let parsed: unknown
      try {
        parsed = JSON.parse(text)
      } catch {
        return { kind: 'damaged', reason: 'not JSON' }
      }
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

function withVersion(value: unknown, version: number): object {
  return isRecord(value) ? { $version: version, ...value } : { $version: version, $value: value }
}

function splitVersion(parsed: unknown): [unknown, number] {
  if (!isRecord(parsed) || !Number.isSafeInteger(parsed.$version)) return [parsed, 1]
  const { $version, ...rest } = parsed
  return ['$value' in rest ? rest.$value : rest, $version as number]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
