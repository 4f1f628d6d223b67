/** What a client sends for a provider, checked beyond its shape and turned into records of the configuration file. */
import { type Detail, invalid, type Static, type TSchema, tidy } from '../../kernel/index.ts'
import { isHeaderValue, notAHeaderValue, redactUrls, restoreUrls } from '../config/index.ts'
import { isHttpUrl, nonBlank, notAnAddress } from '../llm/index.ts'
import type { ModelEntry, ProviderBody } from './contract.ts'
import { isProviderId, MAX_ID_LENGTH } from './names.ts'
import { MANAGED_PROVIDER } from './service.ts'
import { isTable, type Table, without } from './tables.ts'

/** The body as its schema describes it. Throws 40001 with every field that is wrong. `idField`: where it gives a new name, if it does. */
export function checkedBody<S extends TSchema>(schema: S, given: unknown, idField: 'id' | 'new_id' | undefined): Static<S> {
  const faults = isTable(given) ? faultsOf(given, idField) : []
  const body = tidy(schema, given, 'body', misfits => {
    const known = new Set(misfits.map(({ path }) => path))
    return invalid([...misfits, ...faults.filter(({ path }) => !known.has(path))])
  })
  if (faults.length > 0) throw invalid(faults)
  return body
}

/** What is wrong beyond the shape, which may be wrong as well. */
function faultsOf(given: Table, idField: 'id' | 'new_id' | undefined): Detail[] {
  const details: Detail[] = []
  const fault = (field: string, message: string) => void details.push({ path: `body.${field}`, message })
  const text = (field: string) => (typeof given[field] === 'string' ? given[field] : undefined)
  const [id, base_url, default_model] = [idField && text(idField), text('base_url'), text('default_model')]
  if (idField && id !== undefined && !isProviderId(id)) {
    fault(idField, `must be letters, digits, -, _ and spaces, begin with a letter or digit, and have at most ${MAX_ID_LENGTH} characters`)
  }
  if (!isHeaderValue(text('api_key') ?? '')) fault('api_key', notAHeaderValue)
  if (base_url?.includes('${')) fault('base_url', 'must not contain a placeholder of an environment variable')
  else if (nonBlank(base_url) !== undefined && !isHttpUrl(nonBlank(base_url))) fault('base_url', notAnAddress)
  if (!Array.isArray(given.models)) return details
  const names = new Set<unknown>()
  const listed = given.models.flatMap(entry => (isTable(entry) && typeof entry.model === 'string' ? [entry.model] : []))
  const twice = listed.find(model => names.size === names.add(model).size)
  if (twice !== undefined) fault('models', `model ${twice} is listed twice`)
  if (default_model !== undefined && !names.has(default_model)) fault('default_model', 'must be one of models[].model')
  return details
}

/**
 * The record of a provider: what the request does not know stays, what it leaves out is cleared. `api_key`: undefined keeps, empty clears;
 * with one the server is no longer said to need none. A base_url of the same host keeps the credentials of the stored one, which the API does not
 * show; as the API shows it, it keeps that one.
 */
export function providerRecord(id: string, body: ProviderBody, api_key: string | undefined, before: Table = {}): Table {
  const kept = without(before, [
    'type',
    'base_url',
    'default_model',
    ...(api_key === undefined ? [] : ['api_key']),
    ...(api_key ? ['auth'] : [])
  ])
  const given = nonBlank(body.base_url)
  const stored = typeof before.base_url === 'string' ? before.base_url : undefined
  const base_url =
    stored === undefined || given === undefined ? given : given === redactUrls(stored.trim()) ? stored : restoreUrls(stored, given)
  return {
    type: body.type,
    ...(base_url && { base_url }),
    ...(body.default_model !== undefined && { default_model: aliasOf(id, body.default_model) }),
    ...(api_key && { api_key }),
    ...kept
  }
}

const entryFields = [
  'provider',
  'model',
  'max_context_size',
  'display_name',
  'capabilities',
  'max_output_size',
  'support_efforts',
  'adaptive_thinking'
]

/** The record of a model alias, by the same rule. */
export function modelRecord(provider: string, entry: ModelEntry, before: Table = {}): Table {
  const { model, max_context_size, ...rest } = entry
  return { provider, model, max_context_size, ...rest, ...without(before, entryFields) }
}

/** Alias of a provider's model. Those of the managed login begin with the product's name instead of the provider id. */
export function aliasOf(provider: string, model: string): string {
  return `${provider === MANAGED_PROVIDER ? 'svc-code' : provider}/${model}`
}
