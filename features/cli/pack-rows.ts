/** How packs are shown: a row each, one with its options, or why some are not active. */
import { type Feature, type Pack, shortLine } from '../../kernel/index.ts'
import type { PackItem } from '../packs/index.ts'
import { table } from './io.ts'

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

/** Waiting packs that are named; more are only counted. */
const mostWaiting = 5

/** Why packs are not active, a line for each reason: those that wait do so for one of the others, or for one that was left out. */
export function idleLines(idle: readonly Feature[], packs: readonly Pick<Pack, 'name' | 'provides'>[]): string[] {
  const waiting = idle.filter(({ meta }) => meta.error === undefined && meta.waiting_for)
  const others = waiting.length > 1 ? idle.filter(one => !waiting.includes(one)) : idle
  const lines = others.map(feature => `${feature.name} is ${feature.state}: ${why(feature)}`)
  if (waiting.length < 2) return lines
  const names = waiting.map(({ name }) => name)
  const theirs = packs.flatMap(({ name, provides }) => (names.includes(name) ? provides.map(({ id }) => id) : []))
  const wanted = new Set(waiting.flatMap(({ meta }) => meta.waiting_for ?? []).filter(id => !theirs.includes(id)))
  const more = names.length > mostWaiting ? ` and ${names.length - mostWaiting} more (svc-code packs)` : ''
  return [...lines, `${names.length} wait for ${[...wanted].join(', ')}: ${names.slice(0, mostWaiting).join(', ')}${more}`]
}

/** Why a pack is not active, or what of an active one went wrong, in a few words. */
export function why({ meta: { error, waiting_for, faults } }: Feature): string {
  if (error !== undefined) return error
  if (waiting_for) return `waits for ${waiting_for.join(', ')}`
  if (faults) return `${faults.count} ${faults.count === 1 ? 'fault' : 'faults'}, last: ${faults.last}`
  return ''
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

const shortJson = (value: unknown) => (value === undefined ? '-' : shortLine(JSON.stringify(value), 40))
