/** The model list of a provider (`GET {base_url}/models`), read into what an alias record states. */
import { breathe } from '../../kernel/index.ts'
import { MAX_MODELS } from './contract.ts'
import { FetchProblem } from './fetch.ts'
import { costField, pricingField } from './price.ts'
import { isTable, type Table } from './tables.ts'

/** A model as a provider or a registry describes it. */
export interface FoundModel {
  /** Last part of the alias. */
  readonly key: string
  /** The provider's own name for it. */
  readonly model: string
  /** What discovery owns of the record; fields of `discovered` that are missing here are taken out of it. */
  readonly fields: Table
}

/** Fields that a refresh writes. Everything else of a record is the user's, `overrides` above all. */
export const discovered = [
  'max_context_size',
  'display_name',
  'capabilities',
  'support_efforts',
  'default_effort',
  'protocol',
  'cost'
] as const

/**
 * Models of an answer `{ data: [...] }`, by their ids; at most 5,000. Entries without an id are left out, of two with one id the last counts,
 * values that make no sense count as not stated. Rejects with FetchProblem when the answer is no model list or a model has no context length.
 */
export async function readModelList(answer: unknown): Promise<FoundModel[]> {
  const data = isTable(answer) ? answer.data : undefined
  if (!Array.isArray(data)) throw new FetchProblem('the answer is not a model list')
  if (data.length > MAX_MODELS) throw new FetchProblem(`the answer lists more than ${MAX_MODELS} models`)
  const found = new Map<string, FoundModel>()
  for (const item of data) {
    await breathe()
    if (!isTable(item) || typeof item.id !== 'string' || item.id === '') continue
    const { id } = item
    if (!isSize(item.context_length)) throw new FetchProblem(`model ${id.slice(0, 100)} has no context_length`)
    const efforts = isTable(item.think_efforts) && item.think_efforts.support === true ? item.think_efforts : {}
    found.set(id, {
      key: id,
      model: id,
      fields: {
        max_context_size: item.context_length,
        ...textField('display_name', item.display_name),
        capabilities: capabilitiesOf(item),
        ...effortFields(efforts.valid_efforts, efforts.default_effort),
        ...(item.protocol === 'compat_messages' && { protocol: item.protocol }),
        ...pricingField(item.pricing),
        ...costField(item.cost)
      }
    })
  }
  return [...found.values()]
}

function capabilitiesOf(item: Table): string[] {
  const { supports_thinking_type: type } = item
  const thinks = type === 'only' || type === 'both' || (type !== 'no' && item.supports_reasoning === true)
  return [
    ...(thinks ? ['thinking'] : []),
    ...(type === 'only' ? ['always_thinking'] : []),
    ...(item.supports_image_in === true ? ['image_in'] : []),
    ...(item.supports_video_in === true ? ['video_in'] : []),
    ...(item.supports_tool_use === false ? [] : ['tool_use'])
  ]
}

/** Efforts that a model takes, and the usual one if it is one of them. */
export function effortFields(levels: unknown, usual: unknown): Table {
  const support_efforts = strings(levels)
  if (support_efforts.length === 0) return {}
  return { support_efforts, ...(support_efforts.includes(usual as string) && { default_effort: usual }) }
}

/** True for a count of tokens. */
export function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/** The non-empty strings of a list. */
export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string' && item !== '') : []
}

/** `{ [name]: value }` when the value is a text that says something. */
export function textField(name: string, value: unknown): Table {
  return typeof value === 'string' && value.trim() !== '' ? { [name]: value } : {}
}
