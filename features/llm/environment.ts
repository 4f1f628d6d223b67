/** What the environment says of models: one that it defines, for a start without a configuration file, and headers of every request. */
import { Environment, type EnvironmentReport } from '../config/index.ts'
import { isHttpUrl, notAnAddress } from './addresses.ts'
import { nonBlank } from './env-table.ts'
import type { ModelRecord, ProviderRecord } from './records.ts'

/** Id of the provider that `SVC_CODE_MODEL_NAME` defines, and prefix of its alias. */
export const ENVIRONMENT_PROVIDER = 'environment'

interface EnvironmentModel {
  readonly alias: string
  readonly provider: ProviderRecord
  readonly record: ModelRecord
}

/**
 * The model that `SVC_CODE_MODEL_NAME` and its companions define: in memory only, and the default. Needs `SVC_CODE_MODEL_API_KEY`, or
 * `SVC_CODE_MODEL_AUTH=none` for a server that takes no key. `report` hears of variables that are not used.
 */
export function environmentModel(env: NodeJS.ProcessEnv, report?: EnvironmentReport): EnvironmentModel | undefined {
  const variables = new Environment(env, report)
  const model = variables.text('MODEL_NAME')
  const api_key = variables.text('MODEL_API_KEY')
  const base_url = variables.text('MODEL_BASE_URL')
  if (model === undefined) return undefined
  const auth = variables.text('MODEL_AUTH')
  if (auth !== undefined && auth !== 'none') return variables.refuse('MODEL_AUTH', 'is not none')
  if (api_key === undefined && auth === undefined) {
    return variables.refuse('MODEL_NAME', 'is not used without SVC_CODE_MODEL_API_KEY or SVC_CODE_MODEL_AUTH=none')
  }
  if (base_url !== undefined && !isHttpUrl(base_url)) return variables.refuse('MODEL_BASE_URL', `${notAnAddress}; the model is not used`)
  const capped = variables.integer('MODEL_MAX_COMPLETION_TOKENS', Number.MIN_SAFE_INTEGER) ?? 0
  const max_output_size = capped > 0 ? capped : variables.integer('MODEL_MAX_OUTPUT_SIZE', 1)
  const display_name = variables.text('MODEL_DISPLAY_NAME')
  const reasoning_key = variables.text('MODEL_REASONING_KEY')
  const adaptive_thinking = variables.flag('MODEL_ADAPTIVE_THINKING')
  const capabilities = (variables.text('MODEL_CAPABILITIES') ?? 'image_in,thinking').split(',').flatMap(name => nonBlank(name) ?? [])
  return {
    alias: `${ENVIRONMENT_PROVIDER}/${model}`,
    provider: {
      type: variables.text('MODEL_PROVIDER_TYPE') ?? 'svc',
      ...(auth ? { auth } : { api_key: api_key! }),
      ...(base_url && { base_url })
    },
    record: {
      provider: ENVIRONMENT_PROVIDER,
      model,
      max_context_size: variables.integer('MODEL_MAX_CONTEXT_SIZE', 1) ?? 262144,
      capabilities,
      ...(max_output_size && { max_output_size }),
      ...(display_name && { display_name }),
      ...(reasoning_key && { reasoning_key }),
      ...(adaptive_thinking !== undefined && { adaptive_thinking })
    }
  }
}

/** Credentials, because the environment is no source of them, and what belongs to the connection. */
const notOurs = /^((proxy-)?authorization|cookie|(.*-)?api-key|host|connection|content-length|transfer-encoding)$/

/** `Name: value` lines, names in lower case; lines that are no header, and headers that a request makes itself, are passed over. */
export function extraHeaders(text: string | undefined): Readonly<Record<string, string>> {
  const lines = (text ?? '').split(/\r?\n/).flatMap(line => {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
    return name !== undefined && value && !notOurs.test(name.toLowerCase()) ? [[name.toLowerCase(), value] as const] : []
  })
  return Object.fromEntries(lines)
}
