/** From an entry of the directory's `api.json` to what the API shows and an import writes. */
import { yieldToLoop } from '../../kernel/index.ts'
import {
  costField,
  FetchProblem,
  type FoundModel,
  isModelName,
  isSize,
  isTable,
  providerTypes,
  saysEmbedding,
  strings,
  type Table,
  textField
} from '../providers/index.ts'
import type { DirectoryEntry } from './contract.ts'
import { proprietarySdks, sdkEndpoints, wireRules } from './names.ts'

/** An entry as the API shows it, and what an import of it writes. */
export interface ResolvedEntry {
  readonly shown: DirectoryEntry
  /** Endpoint that the entry names, else the one that its SDK knows. */
  readonly base_url: string | undefined
  readonly models: readonly FoundModel[]
}

type Wire = NonNullable<DirectoryEntry['wire_type']>

/** All entries of a directory by id, in upstream order. Rejects with FetchProblem when the document is none. */
export async function resolveDirectory(document: unknown): Promise<Map<string, ResolvedEntry>> {
  if (!isTable(document)) throw new FetchProblem('its answer is not a model directory')
  const entries = new Map<string, ResolvedEntry>()
  for (const [key, entry] of Object.entries(document)) {
    if (!isTable(entry)) continue
    const resolved = await resolveEntry(key, entry)
    entries.set(resolved.shown.id, resolved)
  }
  if (entries.size === 0) throw new FetchProblem('it lists no provider')
  return entries
}

async function resolveEntry(key: string, entry: Table): Promise<ResolvedEntry> {
  const id = text(entry.id) ?? key
  const { wire, guessed, reason } = wireOf(id, entry)
  const named = wire && endpoint(entry.api, wire)
  const needs_base_url = wire !== undefined && named === undefined && needsBaseUrl(entry, wire)
  const models = new Map<string, FoundModel>()
  for (const model of wire && isTable(entry.models) ? Object.values(entry.models) : []) {
    const found = readModel(model, wire!)
    if (found) models.set(found.key, found)
    await yieldToLoop()
  }
  return {
    shown: {
      id,
      name: text(entry.name) ?? id,
      wire_type: wire ?? null,
      guessed,
      needs_base_url,
      rejected: wire === undefined,
      reject_reason: reason ?? null,
      env_key: strings(entry.env)[0] ?? null,
      models: [...models.values()].map(shownModel)
    },
    base_url: named ?? (wire && !needs_base_url ? sdkEndpoints[wire]?.url : undefined),
    models: [...models.values()]
  }
}

function wireOf(id: string, { type, npm }: Table): { wire?: Wire; guessed: boolean; reason?: string } {
  const explicit = text(type)
  if (explicit !== undefined) {
    const wire = providerTypes.find(known => known === explicit)
    return wire ? { wire, guessed: false } : { guessed: false, reason: 'unknown-explicit-type' }
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
  const sdk = sdkEndpoints[wire]?.sdk
  return text(api) !== undefined || (sdk !== undefined && npm !== sdk)
}

/** A model of texts, not deprecated, in a protocol that can be spoken; undefined for any other. */
function readModel(model: unknown, wire: Wire): FoundModel | undefined {
  if (!isTable(model) || !isModelName(text(model.id))) return undefined
  const id = model.id as string
  const { context, input, output } = isTable(model.limit) ? model.limit : {}
  const modalities = isTable(model.modalities) ? model.modalities : {}
  const outputs = strings(modalities.output)
  const embeds = saysEmbedding(model.family, id, model.name)
  const own = ownProtocol(model.provider, wire)
  if (!isSize(context) || (outputs.length > 0 && !outputs.includes('text')) || embeds || !own) return undefined
  if (model.status === 'deprecated' || model.status === 'alpha') return undefined
  const efforts = effortsOf(model)
  const fields: Table = {
    max_context_size: context,
    ...(isSize(input) && { max_input_size: input }),
    ...(isSize(output) && { max_output_size: output }),
    ...textField('display_name', model.name),
    capabilities: capabilitiesOf(model, strings(modalities.input), efforts.always),
    ...(efforts.levels.length > 0 && { support_efforts: efforts.levels }),
    ...(efforts.off && { off_effort: 'none' }),
    ...(isTable(model.interleaved) && textField('reasoning_key', model.interleaved.field)),
    ...costField(model.cost),
    ...own
  }
  return { key: id, model: id, fields }
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
