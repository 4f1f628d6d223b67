/** The model list of a provider (`GET {base_url}/models`), read into what an alias record states. */
import { headOf, yieldToLoop } from '../../kernel/index.ts'
import { listOf, recordOf, stringOf } from '../llm/index.ts'
import { MAX_MODELS } from './contract.ts'
import { FetchProblem } from './fetch.ts'
import { isModelName, isText, saysEmbedding } from './names.ts'
import { costField, pricingField } from './price.ts'
import { isTable, type Table } from './tables.ts'

/** A model as a provider or a registry describes it. */
export interface FoundModel {
  /** Last part of the alias. */
  readonly key: string
  /** The provider's own name for it. */
  readonly model: string
  /** What discovery owns of the record; fields of `discovered` that are missing here are taken out of it. Without a size: see `isSized`. */
  readonly fields: Table
}

/** The list says how many tokens the model reads. One without makes no alias, and leaves one that is there as it is. */
export function isSized({ fields }: FoundModel): boolean {
  return fields.max_context_size !== undefined
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
 * Models of an answer (`{ data: [...] }`, `{ models: [...] }`, or the list itself), by their ids; at most 5,000. Entries without a name
 * that a model may have and those that answer with no text are left out, of two with one id the last counts, values that make no sense
 * count as not stated. Rejects with FetchProblem when the answer is no model list, or no model has a context length under any of the names
 * that servers give it.
 */
export async function readModelList(answer: unknown): Promise<FoundModel[]> {
  const list = listIn(answer)
  if (!list) throw new FetchProblem('the answer is not a model list')
  if (list.length > MAX_MODELS) throw new FetchProblem(`the answer lists more than ${MAX_MODELS} models`)
  const found = new Map<string, FoundModel>()
  for (const item of list) {
    await yieldToLoop()
    const id = isTable(item) ? idOf(item) : ''
    if (!isModelName(id) || !isTable(item) || !answersText(item)) continue
    const max_context_size = contextOf(item)
    if (max_context_size === undefined) {
      found.set(id, { key: id, model: id, fields: {} })
      continue
    }
    const efforts = isTable(item.think_efforts) && item.think_efforts.support === true ? item.think_efforts : {}
    found.set(id, {
      key: id,
      model: id,
      fields: {
        max_context_size,
        ...textField('display_name', item.display_name ?? item.displayName ?? (item.id === undefined ? undefined : item.name)),
        capabilities: capabilitiesOf(item),
        ...effortFields(efforts.valid_efforts, efforts.default_effort),
        ...(item.protocol === 'compat_messages' && { protocol: item.protocol }),
        ...pricingField(item.pricing),
        ...costField(item.cost)
      }
    })
  }
  const all = [...found.values()]
  const [first] = all
  if (first && !all.some(isSized)) throw new FetchProblem(`model ${headOf(first.model, 100)} has no context_length`)
  return all
}

/** The list in an answer, wherever servers put it. Undefined: there is none. */
export function listIn(answer: unknown): readonly unknown[] | undefined {
  const { data, models } = recordOf(answer)
  return [answer, data, models].find(Array.isArray)
}

/** Some servers name a model by its path in their API. */
function idOf({ id, name }: Table): string {
  return typeof id === 'string' ? id : stringOf(name).replace(/^models\//, '')
}

/** Where servers state how many tokens a model reads; the first that does counts. */
const sizes = [
  'context_length',
  'max_model_len',
  'context_window',
  'max_context_length',
  'max_context_size',
  'context_size',
  'max_input_tokens',
  'inputTokenLimit',
  'context_window.context_length',
  'metadata.context_length',
  'top_provider.context_length',
  'limit.context',
  'limits.max_context_window_tokens',
  'capabilities.limits.max_context_window_tokens',
  'model_spec.availableContextTokens',
  'meta.n_ctx',
  'meta.n_ctx_train'
].map(path => path.split('.'))

function contextOf(item: Table): number | undefined {
  return sizes.map(path => path.reduce<unknown>((at, key) => recordOf(at)[key], item)).find(isSize) ?? leastOf(item.providers)
}

/** Of several servers behind one model any may be asked. */
function leastOf(providers: unknown): number | undefined {
  const told = listOf(providers).map(one => recordOf(one).context_length)
  return told.filter(isSize).sort((a, b) => a - b)[0]
}

/** Kinds of models that no turn can be asked of. */
const otherKinds = new Set(['embedding', 'embeddings', 'rerank', 'image', 'audio', 'video', 'moderation', 'transcribe', 'tts'])

function answersText(item: Table): boolean {
  const { id, name, type, supportedGenerationMethods: methods } = item
  const output = modalities(item, 'output_modalities')
  if (otherKinds.has(stringOf(type)) || saysEmbedding(id, name) || (output.length > 0 && !output.includes('text'))) return false
  return !Array.isArray(methods) || methods.includes('generateContent')
}

const modalities = (item: Table, field: string) => [...strings(recordOf(item.architecture)[field]), ...strings(item[field])]

/** What a model can do, in the words of the managed service and of other servers. */
function capabilitiesOf(item: Table): string[] {
  const { supports_thinking_type: type, supports_reasoning, thinking } = item
  const said = recordOf(item.capabilities)
  const input = modalities(item, 'input_modalities')
  const parameters = strings(item.supported_parameters)
  const has = (name: string) => said[name] === true || recordOf(said[name]).supported === true
  const reasons =
    supports_reasoning === true || thinking === true || has('thinking') || has('reasoning') || parameters.includes('reasoning')
  const thinks = type === 'only' || type === 'both' || (type !== 'no' && reasons)
  const tools =
    item.supports_tool_use !== false && said.function_calling !== false && (parameters.length === 0 || parameters.includes('tools'))
  return [
    ...(thinks ? ['thinking'] : []),
    ...(type === 'only' ? ['always_thinking'] : []),
    ...(item.supports_image_in === true || has('vision') || has('image_input') || input.includes('image') ? ['image_in'] : []),
    ...(item.supports_video_in === true || input.includes('video') ? ['video_in'] : []),
    ...(tools ? ['tool_use'] : [])
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

/** The texts of a list. */
export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(isText) : []
}

/** `{ [name]: value }` when the value is a text that says something. */
export function textField(name: string, value: unknown): Table {
  return isText(value) ? { [name]: value } : {}
}
