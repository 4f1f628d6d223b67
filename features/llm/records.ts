/** Records of the configuration file: providers, models, and what belongs to them. */
import { type Static, Type } from '../../kernel/index.ts'

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
  auth: Type.Optional(
    Type.Literal('none', { description: 'The server asks for no credential: none is needed, and none of the provider is sent' })
  ),
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

/** Fields that say whose model it is and how it is reached: no override changes them. */
export const fixedFields = ['provider', 'model', 'protocol', 'base_url', 'beta_api', 'name', 'aliases'] as const

/** The record as it counts. Fixed fields among the overrides are passed over. */
export function withOverrides(record: ModelRecord): ModelRecord {
  if (!record.overrides) return record
  const result: ModelRecord = { ...record, ...record.overrides }
  for (const field of fixedFields) Object.assign(result, { [field]: record[field] })
  return result
}
