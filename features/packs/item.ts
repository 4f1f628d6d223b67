/** What is told of a pack: without the secrets that its options may hold. */
import { isSecretName, type Pack, type PackReport, REDACTED, redactText } from '../../kernel/index.ts'
import type { PackItem } from './contract.ts'

export function itemOf({ name, state, meta, pack, wanted, required, setup_ms, active_since, options }: PackReport): PackItem {
  return {
    ...factsOf(pack),
    name,
    state: wanted || state === 'Unloading' ? state : 'Unloaded',
    required,
    waiting_for: [...(wanted ? (meta.waiting_for ?? []) : [])],
    error: meta.error === undefined ? null : redactText(meta.error),
    faults: meta.faults ? { count: meta.faults.count, last: redactText(meta.faults.last) } : null,
    process: processOf(pack),
    setup_ms: setup_ms ?? null,
    active_since: active_since?.toISOString() ?? null,
    options: options ? (shown(options) as Record<string, unknown>) : null
  }
}

/** A pack that the deployment leaves out; `pack` undefined when it is nowhere to be found. */
export function disabledItem(name: string, pack: Pack | undefined): PackItem {
  return {
    ...factsOf(pack),
    name,
    state: 'Disabled',
    required: false,
    waiting_for: [],
    error: null,
    faults: null,
    process: null,
    setup_ms: null,
    active_since: null,
    options: null
  }
}

function processOf({ process }: Pack): PackItem['process'] {
  if (!process) return null
  const { pid, memory_bytes, restarts } = process()
  return { pid: pid ?? null, memory_bytes: memory_bytes ?? null, restarts }
}

/** What stands in a pack's own declaration. */
export function factsOf(pack: Pack | undefined) {
  const properties = Object.entries(pack?.config?.properties ?? {})
  return {
    version: pack?.version ?? null,
    description: pack?.description ?? null,
    area: pack?.area ?? null,
    needs: Object.values(pack?.needs ?? {}).map(({ id }) => id),
    provides: (pack?.provides ?? []).map(({ id }) => id),
    options_schema: (pack?.config as Record<string, unknown> | undefined) ?? null,
    option_defaults: Object.fromEntries(
      properties.flatMap(([key, schema]) => (schema.default === undefined ? [] : [[key, schema.default]]))
    )
  }
}

function shown(value: unknown, name = ''): unknown {
  if (value !== null && value !== '' && isSecretName(name)) return REDACTED
  if (typeof value === 'string') return redactText(value)
  if (Array.isArray(value)) return value.map(item => shown(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(item, key)]))
}
