/** Sections of the user's configuration file that describe providers and models. */
import { type Static, Type } from '../../kernel/index.ts'
import type { ConfigSection } from '../config/index.ts'
import { nonBlank, providerKey, providerKeyFile } from './env-table.ts'
import { ENVIRONMENT_PROVIDER, environmentModel } from './environment-model.ts'
import { reviewModels, reviewProviders } from './review.ts'

const text = Type.String()
const strings = Type.Array(Type.String())
const size = Type.Integer({ minimum: 1, description: 'Tokens' })
const map = Type.Record(Type.String(), Type.String())

/** A login whose access tokens are the credential. */
export const OauthRef = Type.Object({
  storage: Type.Union([Type.Literal('file'), Type.Literal('keyring')], {
    description: 'keyring is accepted and means file: no keyring of the system is used'
  }),
  key: Type.String({ description: 'Slot: <home>/credentials/<key>.json' }),
  oauth_host: Type.Optional(Type.String({ description: 'Who renews the tokens' }))
})
export type OauthRef = Static<typeof OauthRef>

/** One provider of the file; unknown keys are kept. */
export const ProviderRecord = Type.Object({
  type: Type.Optional(Type.String({ description: 'Wire protocol of its models; compat_chat when absent' })),
  api_key: Type.Optional(text),
  base_url: Type.Optional(text),
  oauth: Type.Optional(OauthRef),
  env: Type.Optional(map),
  custom_headers: Type.Optional(map),
  default_model: Type.Optional(text),
  model_source: Type.Optional(Type.Union([Type.Literal('static'), Type.Literal('discover'), Type.Literal('oauth-catalog')])),
  source: Type.Optional(Type.Object({ kind: Type.String(), url: Type.String(), api_key: Type.Optional(text) }))
})
export type ProviderRecord = Static<typeof ProviderRecord>

/** USD per million tokens. */
export const ModelPrice = Type.Object({
  input: Type.Number({ minimum: 0 }),
  output: Type.Number({ minimum: 0 }),
  cache_read: Type.Optional(Type.Number({ minimum: 0, description: 'As input when absent' })),
  cache_write: Type.Optional(Type.Number({ minimum: 0, description: 'As input when absent' }))
})
export type ModelPrice = Static<typeof ModelPrice>

const tuning = {
  max_input_size: Type.Optional(size),
  max_output_size: Type.Optional(size),
  capabilities: Type.Optional(strings),
  display_name: Type.Optional(text),
  support_efforts: Type.Optional(strings),
  default_effort: Type.Optional(text),
  off_effort: Type.Optional(text),
  reasoning_key: Type.Optional(text),
  adaptive_thinking: Type.Optional(Type.Boolean()),
  cost: Type.Optional(ModelPrice),
  api_key: Type.Optional(text),
  oauth: Type.Optional(OauthRef)
}

/** One model alias of the file. `overrides` survive a refresh of the record and win over it. */
export const ModelRecord = Type.Object({
  provider: Type.String(),
  model: Type.String(),
  max_context_size: size,
  ...tuning,
  protocol: Type.Optional(text),
  base_url: Type.Optional(text),
  beta_api: Type.Optional(Type.Boolean()),
  name: Type.Optional(text),
  aliases: Type.Optional(strings),
  overrides: Type.Optional(Type.Object({ ...tuning, max_context_size: Type.Optional(size) }))
})
export type ModelRecord = Static<typeof ModelRecord>

const Providers = Type.Record(Type.String(), ProviderRecord)
const Models = Type.Record(Type.String(), ModelRecord)
/** A string that may be missing as a whole: the checker sees a string, the type says that nobody may have set it. */
const Name = Type.Unsafe<string | undefined>(Type.String())

/** `providers.<id>`; on the wire without secrets (contract 1, Configuration). */
export const providersSection: ConfigSection<typeof Providers> = {
  name: 'providers',
  schema: Providers,
  default: {},
  secrets: ['*.api_key', '*.oauth', '*.env', '*.custom_headers', '*.source.api_key'],
  overlay: env => {
    const model = environmentModel(env)
    return model && { [ENVIRONMENT_PROVIDER]: model.provider }
  },
  review: reviewProviders,
  toWire: providers => Object.fromEntries(Object.entries(providers).map(([id, record]) => [id, providerToWire(record)]))
}

/** `models.<alias>`. */
export const modelsSection: ConfigSection<typeof Models> = {
  name: 'models',
  schema: Models,
  default: {},
  secrets: ['*.api_key', '*.oauth', '*.custom_headers', '*.overrides.api_key', '*.overrides.oauth'],
  overlay: (env, report) => {
    const model = environmentModel(env, report)
    return model && { [model.alias]: model.record }
  },
  review: reviewModels
}

/** Alias used by sessions that name no model. */
export const defaultModelSection: ConfigSection<typeof Name> = {
  name: 'default_model',
  schema: Name,
  default: undefined,
  overlay: env => environmentModel(env)?.alias
}

/** Kept for clients; no model is chosen by it. */
export const defaultProviderSection: ConfigSection<typeof Name> = { name: 'default_provider', schema: Name, default: undefined }

const Thinking = Type.Object({
  enabled: Type.Optional(Type.Boolean({ default: true })),
  effort: Type.Optional(text),
  keep: Type.Optional(Type.String({ default: 'all' }))
})
/** `[thinking]`: `keep` is `all`, `off`, or a number of turns where the protocol counts them. */
export type ThinkingConfig = Static<typeof Thinking>

/** `thinking`: whether and how hard models think unless a session says otherwise. */
export const thinkingSection: ConfigSection<typeof Thinking> = {
  name: 'thinking',
  schema: Thinking,
  default: { enabled: true },
  overlay: env => {
    const effort = nonBlank(env.SVC_CODE_MODEL_THINKING_EFFORT)
    const keep = nonBlank(env.SVC_CODE_MODEL_THINKING_KEEP)
    return effort || keep ? { ...(effort && { effort }), ...(keep && { keep }) } : undefined
  }
}

/** What this pack contributes to the configuration about models. */
export const llmSections = [providersSection, modelsSection, defaultModelSection, defaultProviderSection, thinkingSection] as const

/** What `GET /config` shows of a provider. */
export function providerToWire(record: ProviderRecord) {
  const base_url = nonBlank(record.base_url)
  const default_model = nonBlank(record.default_model)
  return {
    type: record.type ?? '',
    ...(base_url && { base_url }),
    ...(default_model && { default_model }),
    has_api_key: (providerKey(record) ?? providerKeyFile(record)) !== undefined
  }
}
