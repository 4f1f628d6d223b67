/** Sections of the user's configuration file that describe providers and models. */
import { type Static, Type } from '../../kernel/index.ts'
import type { ConfigSection } from '../config/index.ts'
import { nonBlank, providerKey, providerKeyFile } from './env-table.ts'
import { ENVIRONMENT_PROVIDER, environmentModel } from './environment.ts'
import { ModelRecord, ProviderRecord } from './records.ts'
import { reviewModels, reviewProviders } from './review.ts'

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
  effort: Type.Optional(Type.String()),
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
