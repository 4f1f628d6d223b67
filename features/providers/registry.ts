/** A private registry (`api.json`): the providers it lists, each with its models, and the `source` by which a provider that came from it is known. */
import { yieldToLoop } from '../../kernel/index.ts'
import { isHttpUrl } from '../llm/index.ts'
import { effortFields, type FoundModel, isSize, strings, textField } from './discovery.ts'
import { FetchProblem } from './fetch.ts'
import { isModelName, isProviderId } from './names.ts'
import { costField } from './price.ts'
import { isTable, type Table } from './tables.ts'

/** A provider of a registry. */
export interface RegistryEntry {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly base_url: string
  readonly models: readonly FoundModel[]
}

/** Used when a registry says nothing about the size of a model, tokens. */
const DEFAULT_CONTEXT_SIZE = 131_072
const MAX_PROVIDERS = 1_000
const types = ['svc', 'compat_chat', 'compat_responses', 'compat_messages']

/**
 * The entries that can be imported. Rejects with FetchProblem when there is none, so that a broken answer never empties a configuration, and when
 * there are too many: what is left out would count as gone.
 */
export async function readRegistry(answer: unknown): Promise<RegistryEntry[]> {
  if (!isTable(answer)) throw new FetchProblem('the answer is not a registry')
  const entries = Object.values(answer)
  if (entries.length > MAX_PROVIDERS) throw new FetchProblem(`the registry lists more than ${MAX_PROVIDERS} providers`)
  const found = new Map<string, RegistryEntry>()
  for (const entry of entries) {
    const read = isTable(entry) ? await readEntry(entry) : undefined
    if (read) found.set(read.id, read)
  }
  if (found.size === 0) throw new FetchProblem('the registry lists no provider that can be imported')
  return [...found.values()]
}

async function readEntry(entry: Table): Promise<RegistryEntry | undefined> {
  const { id, name, api, type, models } = entry
  if (typeof id !== 'string' || !isProviderId(id) || typeof type !== 'string' || !types.includes(type)) return undefined
  if (!isHttpUrl(api) || api.includes('${')) return undefined
  const found: FoundModel[] = []
  for (const [key, model] of isTable(models) ? Object.entries(models) : []) {
    await yieldToLoop()
    found.push(...readModel(key, model))
  }
  if (found.length === 0) return undefined
  return { id, name: typeof name === 'string' && name !== '' ? name : id, type, base_url: api, models: found }
}

function readModel(key: string, model: unknown): FoundModel[] {
  if (!isModelName(key) || !isTable(model) || !isModelName(model.id)) return []
  const { context, output } = isTable(model.limit) ? model.limit : {}
  const fields = {
    max_context_size: [context, output].find(isSize) ?? DEFAULT_CONTEXT_SIZE,
    ...textField('display_name', model.name),
    capabilities: capabilitiesOf(model),
    ...effortFields(model.support_efforts, model.default_effort),
    ...costField(model.cost)
  }
  return [{ key, model: model.id, fields }]
}

function capabilitiesOf(model: Table): string[] {
  const input = strings(isTable(model.modalities) ? model.modalities.input : undefined)
  const hints = [
    ...['image', 'video', 'audio'].filter(kind => input.includes(kind)).map(kind => `${kind}_in`),
    ...(model.reasoning === true ? ['thinking'] : []),
    ...(model.tool_call === true ? ['tool_use'] : [])
  ]
  const silent = hints.length === 0 && model.tool_call !== false
  return silent ? ['tool_use'] : hints
}

/** URL of the registry that a provider came from. */
export function registryOf(record: unknown): string | undefined {
  const source = registrySource(record)
  return typeof source?.url === 'string' ? source.url : undefined
}

/** Id under which the registry lists a provider: a rename here does not rename it there. */
export function listedId(id: string, record: unknown): string {
  const listed = registrySource(record)?.id
  return typeof listed === 'string' ? listed : id
}

/** The record with the registry's id in its source, when it has one and the provider is called otherwise here. */
export function withListedId(record: Table, listed: string, id: string): Table {
  const source = registrySource(record)
  if (!source) return record
  const { id: _, ...rest } = source
  return { ...record, source: listed === id ? rest : { ...rest, id: listed } }
}

function registrySource(record: unknown): Table | undefined {
  return isTable(record) && isTable(record.source) && record.source.kind === 'apiJson' ? record.source : undefined
}
