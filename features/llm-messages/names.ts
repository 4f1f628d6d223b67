/** What the wire calls things: header names and values, beta names, model families. Data only; `custom_headers` and the model record win. */

/** Lower case. */
export const headerNames = { key: 'x-api-key', version: 'anthropic-version', betas: 'anthropic-beta' } as const

/** Of the protocol; sent with every request. */
export const version = '2023-06-01'

/** Thinking between tool calls; what the provider keeps of earlier thinking. */
export const betas = {
  interleaved: 'interleaved-thinking-2025-05-14',
  context: 'context-management-2025-06-27'
} as const

/** Edit of the context that says how much thinking stays. */
export const clearThinking = 'clear_thinking_20251015'

/** Words of the wire for how much a budget model thinks, in tokens. Another word is one of an adaptive model. */
export const budgets: Readonly<Record<string, number>> = { low: 1024, medium: 4096, high: 32_000, on: 32_000 }

/** The least that the wire takes as a budget. */
export const SMALLEST_BUDGET = 1024

/** What models of a name can do. */
export interface Family {
  readonly name: RegExp
  /** Largest answer in tokens; the wire demands a limit with every request. */
  readonly output: number
  /** `budget`: told how many tokens; `adaptive`: decides by itself. */
  readonly thinks: 'never' | 'budget' | 'adaptive'
  /** False: a server that speaks the protocol with models of its own. */
  readonly known: boolean
}

/** A version that no other small number follows; a date may. */
const last = '(?![-.]\\d{1,2}(?!\\d))'

const families: readonly Omit<Family, 'known'>[] = [
  { name: /claude-(instant|v?2|3-(opus|sonnet|haiku))/, output: 4096, thinks: 'never' },
  { name: /claude-3[-.]5/, output: 8192, thinks: 'never' },
  { name: /claude-3[-.]7/, output: 64_000, thinks: 'budget' },
  { name: new RegExp(`claude-opus-4([-.][01])?${last}`), output: 32_000, thinks: 'budget' },
  { name: new RegExp(`claude-(opus|sonnet|haiku)-4([-.][05])?${last}`), output: 64_000, thinks: 'budget' },
  { name: /claude-(sonnet|haiku)-4/, output: 64_000, thinks: 'adaptive' },
  { name: /claude-/, output: 128_000, thinks: 'adaptive' }
]

const unknown: Family = { name: /^/, output: 128_000, thinks: 'budget', known: false }

/** The first family whose name fits the upstream model name. */
export function familyOf(model_name: string): Family {
  const found = families.find(family => family.name.test(model_name.toLowerCase()))
  return found ? { ...found, known: true } : unknown
}
