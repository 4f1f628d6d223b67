/** Reading settings out of environment variables. A value that cannot be read is reported by the name of its variable and not used. */

/** Takes what is wrong with a variable. Never a value. */
export type EnvironmentReport = (variable: string, problem: string) => void

const on = ['1', 'true', 'yes', 'on']
const off = ['0', 'false', 'no', 'off']

/** A text without blanks around it; undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** Reads variables by their names without `SVC_CODE_`. Blank ones count as not set. */
export class Environment {
  readonly #env: NodeJS.ProcessEnv
  readonly #report: EnvironmentReport

  constructor(env: NodeJS.ProcessEnv, report: EnvironmentReport = () => undefined) {
    this.#env = env
    this.#report = report
  }

  text(name: string): string | undefined {
    return textOf(this.#env[`SVC_CODE_${name}`])
  }

  /** A whole number that is at least `minimum`. */
  integer(name: string, minimum = 0): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = Number(text)
    if (/^-?\d+$/.test(text) && Number.isSafeInteger(value) && value >= minimum) return value
    return this.refuse(name, `is no whole number${minimum < 0 ? '' : ` from ${minimum}`}; it is ignored`)
  }

  /** A decimal number. */
  number(name: string): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = Number(text)
    return Number.isFinite(value) ? value : this.refuse(name, 'is no number; it is ignored')
  }

  /** 1, true, yes, on or 0, false, no, off in any case. */
  flag(name: string): boolean | undefined {
    const text = this.text(name)?.toLowerCase()
    if (text === undefined) return undefined
    if (on.includes(text)) return true
    return off.includes(text) ? false : this.refuse(name, 'is neither on (1, true) nor off (0, false); it is ignored')
  }

  /** Says that the variable is not used, and why. */
  refuse(name: string, problem: string): undefined {
    this.#report(`SVC_CODE_${name}`, problem)
    return undefined
  }

  /** Names that begin with a prefix, without `SVC_CODE_` in front. */
  names(prefix: string): string[] {
    const start = `SVC_CODE_${prefix}`
    return Object.keys(this.#env).flatMap(name => (name.startsWith(start) ? [name.slice('SVC_CODE_'.length)] : []))
  }
}

/** The given keys that have a value; undefined when none has. */
export function defined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } | undefined {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return kept.length > 0 ? (Object.fromEntries(kept) as { [K in keyof T]: Exclude<T[K], undefined> }) : undefined
}

/** A service: `<prefix>_BASE_URL` and `<prefix>_API_KEY`. Own `undefined` fields remove what the file says. */
export function serviceOf(variables: Environment, prefix: string) {
  const api_key = variables.text(`${prefix}_API_KEY`)
  const base_url = variables.text(`${prefix}_BASE_URL`)
  // The key belongs to that URL: it must not go to the one of the file.
  if (base_url && !URL.canParse(base_url)) return variables.refuse(`${prefix}_BASE_URL`, 'is no URL; it is ignored, and so is its key')
  if (base_url) return { base_url, api_key, oauth: undefined, custom_headers: undefined }
  return api_key ? { api_key } : undefined
}

const knownFlags = ['wait_for', 'persistence_minidb_readmodel', 'auto_session_title', 'secondary-model', 'subagent_fork', 'tool-select']
const prefix = 'EXPERIMENTAL_'

/** `SVC_CODE_EXPERIMENTAL_<ID>` switches one flag, `SVC_CODE_EXPERIMENTAL_FLAG` all known ones that have no variable of their own. */
export function experimentalFlags(variables: Environment): Record<string, boolean> | undefined {
  const flags: Record<string, boolean> = {}
  const all = variables.flag(`${prefix}FLAG`)
  if (all !== undefined) for (const id of knownFlags) flags[id] = all
  for (const name of variables.names(prefix)) {
    const id = name.slice(prefix.length).toLowerCase()
    const value = id === '' || id === 'flag' ? undefined : variables.flag(name)
    if (value === undefined) continue
    flags[knownFlags.find(known => known.replaceAll('-', '_') === id) ?? id] = value
  }
  return defined(flags)
}
