/** The model list of the managed API as records of the configuration file. */
import { isTable } from './account-service.ts'
import { AccountProblem } from './problem.ts'

/** What the list says of a model; fields that it leaves out are taken out of a stored record. */
export interface ListedModel {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** Fields of a record that the list owns; everything else is the user's. */
export const listedFields = ['max_context_size', 'display_name', 'capabilities', 'support_efforts', 'default_effort', 'protocol'] as const

const MAX_MODELS = 1_000

/** Throws AccountProblem when the answer is no list, or a model says nothing about its context. Entries without an id are left out. */
export function readModels(answer: unknown): ListedModel[] {
  const data = isTable(answer) ? answer.data : undefined
  if (!Array.isArray(data)) throw new AccountProblem('the answer is not a model list', { status: 200 })
  const models = new Map<string, ListedModel>()
  for (const item of data.slice(0, MAX_MODELS)) {
    if (!isTable(item) || typeof item.id !== 'string' || item.id === '') continue
    models.set(item.id, { id: item.id, fields: fieldsOf(item, item.id) })
  }
  return [...models.values()]
}

function fieldsOf(item: Readonly<Record<string, unknown>>, id: string): ListedModel['fields'] {
  const { context_length, display_name, think_efforts: efforts } = item
  if (!Number.isSafeInteger(context_length) || (context_length as number) < 1) {
    throw new AccountProblem(`model ${id.slice(0, 100)} has no context_length`, { status: 200 })
  }
  const levels = isTable(efforts) && efforts.support === true && Array.isArray(efforts.valid_efforts) ? efforts.valid_efforts : []
  const support_efforts = levels.filter(level => typeof level === 'string' && level !== '')
  const usual = isTable(efforts) ? efforts.default_effort : undefined
  return {
    max_context_size: context_length,
    ...(typeof display_name === 'string' && display_name !== '' && { display_name }),
    capabilities: capabilitiesOf(item),
    ...(support_efforts.length > 0 && { support_efforts }),
    ...(typeof usual === 'string' && support_efforts.includes(usual) && { default_effort: usual }),
    ...(item.protocol === 'compat_messages' && { protocol: item.protocol })
  }
}

function capabilitiesOf(item: Readonly<Record<string, unknown>>): string[] {
  const { supports_thinking_type: thinking } = item
  const thinks = thinking === 'only' || thinking === 'both' || (thinking !== 'no' && item.supports_reasoning === true)
  const found: readonly (readonly [string, boolean])[] = [
    ['thinking', thinks],
    ['always_thinking', thinking === 'only'],
    ['image_in', item.supports_image_in === true],
    ['video_in', item.supports_video_in === true],
    ['tool_use', item.supports_tool_use !== false]
  ]
  return found.flatMap(([name, has]) => (has ? [name] : []))
}
