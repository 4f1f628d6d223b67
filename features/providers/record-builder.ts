/** What a client sends for a provider, checked beyond its shape and turned into records of the configuration file. */
import { type Detail, invalid, redactUrls } from '../../kernel/index.ts'
import { isHeaderValue, isHttpUrl, nonBlank, notAHeaderValue, notAnAddress } from '../llm/index.ts'
import type { ModelEntry, ProviderBody } from './contract.ts'
import { isProviderId, MAX_ID_LENGTH } from './names.ts'
import { MANAGED_PROVIDER } from './service.ts'
import { type Table, without } from './tables.ts'

/** Throws 40001 with every field that is wrong. `id`: field and value of a new name, if the request gives one. */
export function checkBody(
  { api_key = '', base_url, default_model, models }: ProviderBody & { readonly api_key?: string },
  id?: { readonly field: string; readonly value: string }
): void {
  const details: Detail[] = []
  if (id && !isProviderId(id.value)) {
    details.push({
      path: `body.${id.field}`,
      message: `must be letters, digits, -, _ and spaces, begin with a letter or digit, and have at most ${MAX_ID_LENGTH} characters`
    })
  }
  if (!isHeaderValue(api_key)) details.push({ path: 'body.api_key', message: notAHeaderValue })
  if (base_url?.includes('${'))
    details.push({ path: 'body.base_url', message: 'must not contain a placeholder of an environment variable' })
  else if (nonBlank(base_url) !== undefined && !isHttpUrl(nonBlank(base_url)))
    details.push({ path: 'body.base_url', message: notAnAddress })
  const names = new Set<string>()
  const twice = models.find(({ model }) => names.size === names.add(model).size)
  if (twice) details.push({ path: 'body.models', message: `model ${twice.model} is listed twice` })
  if (default_model !== undefined && !names.has(default_model)) {
    details.push({ path: 'body.default_model', message: 'must be one of models[].model' })
  }
  if (details.length > 0) throw invalid(details)
}

/**
 * The record of a provider: what the request does not know stays, what it leaves out is cleared. `api_key`: undefined keeps, empty clears;
 * with one the server is no longer said to need none. A base_url as the API shows the stored one, without its credentials, keeps that one.
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
  const base_url = stored !== undefined && given === redactUrls(stored.trim()) ? stored : given
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
