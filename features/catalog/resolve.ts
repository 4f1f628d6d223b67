/** From an entry of the directory's `api.json` to what the API shows and an import writes. */
import { costField, type FoundModel, isSize, strings, textField } from '../providers/index.ts'
import type { DirectoryEntry } from './contract.ts'
import { proprietarySdks, sdkWithEndpoint, wireRules } from './names.ts'
import { isTable, type Table } from './tables.ts'

export interface ResolvedEntry {
  readonly shown: DirectoryEntry
  /** Endpoint of the entry, if it names a usable one. */
  readonly base_url: string | undefined
  readonly models: readonly FoundModel[]
}

type Wire = NonNullable<DirectoryEntry['wire_type']>
const explicitTypes: readonly string[] = ['svc', 'compat_chat', 'compat_responses', 'compat_messages', 'compat_genai', 'compat_cloud']

/** All entries of a directory by id, in upstream order. Throws an Error when the document is none. */
export function resolveDirectory(document: unknown): Map<string, ResolvedEntry> {
  if (!isTable(document)) throw new Error('the answer is not a model directory')
  const entries = Object.entries(document).flatMap(([key, entry]) => (isTable(entry) ? [resolveEntry(key, entry)] : []))
  if (entries.length === 0) throw new Error('the model directory is empty')
  return new Map(entries.map(entry => [entry.shown.id, entry]))
}

function resolveEntry(key: string, entry: Table): ResolvedEntry {
  const id = text(entry.id) ?? key
  const { wire, guessed, reason } = wireOf(id, entry)
  const base_url = wire && endpoint(entry.api, wire)
  const models =
    wire && isTable(entry.models)
      ? [
          ...new Map(
            Object.values(entry.models)
              .flatMap(model => readModel(model, wire))
              .map(model => [model.key, model])
          ).values()
        ]
      : []
  return {
    shown: {
      id,
      name: text(entry.name) ?? id,
      wire_type: wire ?? null,
      guessed,
      needs_base_url: wire !== undefined && base_url === undefined && needsBaseUrl(entry, wire),
      rejected: wire === undefined,
      reject_reason: reason ?? null,
      env_key: strings(entry.env)[0] ?? null,
      models: models.map(shownModel)
    },
    base_url,
    models
  }
}

function wireOf(id: string, { type, npm }: Table): { wire?: Wire; guessed: boolean; reason?: string } {
  const explicit = text(type)
  if (explicit !== undefined) {
    return explicitTypes.includes(explicit)
      ? { wire: explicit as Wire, guessed: false }
      : { guessed: false, reason: 'unknown-explicit-type' }
  }
  const sdk = (text(npm) ?? '').toLowerCase()
  const name = id.toLowerCase()
  const rule = wireRules.find(one => one.sdk.some(word => sdk.includes(word)) || one.id.some(word => name.includes(word)))
  if (rule) return { wire: rule.wire, guessed: false }
  if (proprietarySdks.some(word => sdk.includes(word))) return { guessed: false, reason: 'proprietary-sdk' }
  return { wire: 'compat_chat', guessed: true }
}

/** A usable endpoint; of the messages protocol without the version, which its adapter adds. */
export function endpoint(given: unknown, wire: string): string | undefined {
  const url = text(given)
  if (url === undefined || url.includes('${')) return undefined
  return wire === 'compat_messages' ? url.replace(/\/v1\/?$/, '') : url
}

function needsBaseUrl({ api, npm }: Table, wire: Wire): boolean {
  const sdk = sdkWithEndpoint[wire]
  return text(api) !== undefined || (sdk !== undefined && npm !== sdk)
}

/** Models of texts, not deprecated, in a protocol that can be spoken. */
function readModel(model: unknown, wire: Wire): FoundModel[] {
  if (!isTable(model) || text(model.id) === undefined) return []
  const id = model.id as string
  const { context, input, output } = isTable(model.limit) ? model.limit : {}
  const modalities = isTable(model.modalities) ? model.modalities : {}
  const outputs = strings(modalities.output)
  const embeds = [model.family, id, model.name].some(part => typeof part === 'string' && /embed/i.test(part))
  const own = ownProtocol(model.provider, wire)
  if (!isSize(context) || (outputs.length > 0 && !outputs.includes('text')) || embeds || !own) return []
  if (model.status === 'deprecated' || model.status === 'alpha') return []
  const efforts = effortsOf(model)
  const fields: Table = {
    max_context_size: context,
    ...(isSize(input) && { max_input_size: input }),
    ...(isSize(output) && { max_output_size: output }),
    ...textField('display_name', model.name),
    capabilities: capabilitiesOf(model, strings(modalities.input), efforts.always),
    ...(efforts.levels.length > 0 && { support_efforts: efforts.levels }),
    ...(efforts.off && { off_effort: 'none' }),
    ...costField(model.cost),
    ...own
  }
  return [{ key: id, model: id, fields }]
}

/** A model may be served by another protocol than its provider's: kept for messages with an endpoint, dropped otherwise. */
function ownProtocol(provider: unknown, wire: Wire): Table | undefined {
  const npm = isTable(provider) ? text(provider.npm)?.toLowerCase() : undefined
  if (npm === undefined) return {}
  const other = wireRules.find(rule => rule.sdk.some(word => npm.includes(word)))?.wire
  if (other === wire) return {}
  if (other === undefined) return proprietarySdks.some(word => npm.includes(word)) ? undefined : {}
  const base_url = isTable(provider) ? endpoint(provider.api, other) : undefined
  return other === 'compat_messages' && base_url ? { protocol: other, base_url } : undefined
}

function effortsOf(model: Table): { levels: string[]; off: boolean; always: boolean } {
  const options = Array.isArray(model.reasoning_options) ? model.reasoning_options.filter(isTable) : []
  const values = options.flatMap(option => (option.type === 'effort' && Array.isArray(option.values) ? option.values : []))
  const levels = [...new Set(strings(values).filter(value => value !== 'none'))]
  const off = values.some(value => value === null || value === 'none')
  return { levels, off, always: levels.length > 0 && !off && !options.some(option => option.type === 'toggle') }
}

function capabilitiesOf(model: Table, input: readonly string[], always: boolean): string[] {
  const { reasoning, tool_call, dynamically_loaded_tools: dynamic } = model
  return [
    ...['image', 'video', 'audio'].filter(kind => input.includes(kind)).map(kind => `${kind}_in`),
    ...(reasoning === true ? [always ? 'always_thinking' : 'thinking'] : []),
    ...(tool_call === false ? [] : ['tool_use']),
    ...(dynamic === true ? ['dynamically_loaded_tools'] : [])
  ]
}

/** The directory list calls every kind of thinking `thinking`. */
function shownModel({ key, fields }: FoundModel): DirectoryEntry['models'][number] {
  const capabilities = (fields.capabilities as string[]).map(name => (name === 'always_thinking' ? 'thinking' : name))
  return {
    id: key,
    ...(typeof fields.display_name === 'string' && { name: fields.display_name }),
    max_context_size: fields.max_context_size as number,
    capabilities,
    reasoning: capabilities.includes('thinking')
  }
}

/** A string that says something. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}
