/** How packs are shown: a line, or one with its options. */
import type { PackItem } from '../packs/index.ts'
import { why } from './banner.ts'
import { clip, table } from './io.ts'

type Facts = Partial<Pick<PackItem, 'description' | 'process' | 'setup_ms' | 'options_schema' | 'option_defaults' | 'options'>>

export interface Row extends Facts {
  readonly name: string
  readonly state: string
  readonly version?: string | undefined
  readonly why: string
}

export const disabledRow = (name: string): Row => ({ name, state: 'disabled', why: 'by --disable or config.toml' })

/** A pack as the server tells it. */
export function rowOf(item: PackItem): Row {
  const { name, state, version, error, waiting_for, faults, description, process, setup_ms, options_schema, option_defaults, options } =
    item
  const meta = { ...(error === null ? {} : { error }), ...(waiting_for.length > 0 ? { waiting_for } : {}), ...(faults ? { faults } : {}) }
  const facts = { description, process, setup_ms, options_schema, option_defaults, options }
  if (state === 'Disabled') return { ...facts, ...disabledRow(name) }
  return { name, state, version: version ?? undefined, why: state === 'Unloaded' ? 'for this run' : why({ name, state, meta }), ...facts }
}

/** One pack with its options: type, default and what is in effect. */
export function details(row: Row): string {
  const { name, state, version, description, why: reason } = row
  const properties = (row.options_schema as { properties?: Record<string, Record<string, unknown>> } | null | undefined)?.properties ?? {}
  const head = [
    [
      name,
      [state, version, row.setup_ms === undefined || row.setup_ms === null ? undefined : `set up in ${row.setup_ms} ms`]
        .filter(Boolean)
        .join(', ')
    ],
    ...(reason === '' ? [] : [['', reason]]),
    ...(description ? [['', description]] : []),
    ...(row.process ? [['', processText(row.process)]] : [])
  ]
  const options = Object.entries(properties).map(([key, schema]) => [
    key,
    typeOf(schema),
    shortJson(schema.default),
    shortJson(row.options?.[key]),
    String(schema.description ?? '')
  ])
  if (options.length === 0) return `${table(head)}no options\n`
  return `${table(head)}\noptions, in [packs.config.${name}] of config.toml\n${table([['option', 'type', 'default', 'now', ''], ...options])}`
}

function processText({ pid, memory_bytes, restarts }: NonNullable<Row['process']>): string {
  const memory = memory_bytes === null ? '' : `, ${Math.round(memory_bytes / 1_048_576)} MB`
  const again = restarts === 0 ? '' : `, started again ${restarts} ${restarts === 1 ? 'time' : 'times'}`
  return pid === null ? `a process of its own, which does not run${again}` : `process ${pid} of its own${memory}${again}`
}

/** `integer 1..100`, `"a" | "b"`, `string[]`. */
function typeOf(schema: Record<string, unknown>): string {
  const { type, anyOf, items, minimum, maximum } = schema
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(anyOf)) return anyOf.map(one => typeOf(one as Record<string, unknown>)).join(' | ')
  if (type === 'array') return `${typeOf((items ?? {}) as Record<string, unknown>)}[]`
  const range = minimum === undefined && maximum === undefined ? '' : ` ${minimum ?? ''}..${maximum ?? ''}`
  return `${String(type ?? 'any')}${range}`
}

const shortJson = (value: unknown) => (value === undefined ? '-' : clip(JSON.stringify(value), 40))
