/** Reading settings out of environment variables. What cannot be read as its type is passed on as it is, so that the check names it. */

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

// biome-ignore lint/suspicious/noExplicitAny: an unreadable text travels to the section's schema, which refuses it
type Doubtful = any

export function numberOf(value: string | undefined): Doubtful {
  const text = textOf(value)
  return text === undefined || !/^-?\d+(\.\d+)?$/.test(text) ? text : Number(text)
}

export const integerOf = numberOf

export function booleanOf(value: string | undefined): boolean | undefined {
  const text = textOf(value)?.toLowerCase()
  if (text === undefined) return undefined
  return !['0', 'false', 'no', 'off'].includes(text)
}

/** The given keys that have a value; undefined when none has. */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return kept.length > 0 ? (Object.fromEntries(kept) as { [K in keyof T]: Exclude<T[K], undefined> }) : undefined
}

/** A service from the environment. Own `undefined` fields remove what the file says. */
export function serviceOf(url: string | undefined, key: string | undefined) {
  const base_url = textOf(url)
  const api_key = textOf(key)
  if (base_url) return { base_url, api_key, oauth: undefined, custom_headers: undefined }
  return api_key ? { api_key } : undefined
}

const knownFlags = ['wait_for', 'persistence_minidb_readmodel', 'auto_session_title', 'secondary-model', 'subagent_fork', 'tool-select']
const prefix = 'SVC_CODE_EXPERIMENTAL_'

export function experimentalFlags(env: NodeJS.ProcessEnv): Record<string, boolean> | undefined {
  const flags: Record<string, boolean> = {}
  const all = booleanOf(env[`${prefix}FLAG`])
  if (all !== undefined) for (const id of knownFlags) flags[id] = all
  for (const [name, value] of Object.entries(env)) {
    const on = name.startsWith(prefix) && name !== `${prefix}FLAG` ? booleanOf(value) : undefined
    if (on === undefined) continue
    const id = name.slice(prefix.length).toLowerCase()
    flags[knownFlags.find(known => known.replaceAll('-', '_') === id) ?? id] = on
  }
  return Object.keys(flags).length > 0 ? flags : undefined
}
