/** Wire of the providers pack (contract 1, Models and providers; Auth readiness). Pure data. */
import { defineEvent, defineRoute, errorSpec, named, nullable, oneOf, type Static, type TSchema, Type } from '../../kernel/index.ts'
import type { LoginStatus } from '../llm/index.ts'

/** PUT, DELETE and imports leave the providers of logins alone. */
export const ProviderManaged = errorSpec('provider_managed', 40003, 'the provider is managed by a login; log out first')
/** No provider of this id in the effective configuration. */
export const ProviderMissing = errorSpec('provider_missing', 40412, 'provider not found')
/** No alias of this id in the effective configuration, and none that a pack brings along. */
export const ModelMissing = errorSpec('model_missing', 40413, 'model not found')
/** The id of a create, or the `new_id` of a replace, is taken. */
export const ProviderExists = errorSpec('provider_exists', 40921, 'a provider with this id exists')

/** Text that the configuration file can hold, without half of a surrogate pair, and without what else is named. */
const textWithout = (more: string) => `^(?:[^${more}\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff])*$`
const name = Type.String({ minLength: 1, pattern: textWithout(''), examples: ['Large'] })
const tokens = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Tokens', examples: [200000] })

/** The wire protocols of the API (contract 1, Provider item). */
export const providerTypes = ['svc', 'compat_chat', 'compat_responses', 'compat_messages', 'compat_genai', 'compat_cloud'] as const
/** Wire protocols that a provider may be created with. */
export const ProviderType = named('ProviderType', oneOf(providerTypes, { description: 'Wire protocol', examples: ['compat_chat'] }))

/** A provider without its key (contract 1, Provider item). */
export const ProviderItem = named(
  'Provider',
  Type.Object({
    id: Type.String({ examples: ['work'] }),
    type: Type.String({
      examples: ['compat_chat'],
      description: `Wire protocol: ${providerTypes.join(', ')}, or what the configuration file names`
    }),
    base_url: Type.Optional(Type.String()),
    default_model: Type.Optional(Type.String({ description: 'Model alias id' })),
    has_api_key: Type.Boolean(),
    status: oneOf(['connected', 'unconfigured', 'error'], {
      description: 'connected: a key or a login is there, or none is needed; error is reserved'
    }),
    models: Type.Array(Type.String(), { description: 'Model alias ids', examples: [['work/large-1']] })
  })
)
export type ProviderItem = Static<typeof ProviderItem>

/** The only answer of the API that carries a key. */
const ProviderWithKey = named(
  'ProviderWithKey',
  Type.Composite([ProviderItem, Type.Object({ api_key: Type.Optional(Type.String({ description: 'Present when one is stored' })) })])
)

/** An alias in the model list (contract 1, Model item). */
export const ModelItem = named(
  'Model',
  Type.Object({
    provider: Type.String({ description: 'Owning provider; empty when it is not configured', examples: ['work'] }),
    model: Type.String({ description: 'Alias id: key of the model table', examples: ['work/large-1'] }),
    display_name: Type.Optional(Type.String()),
    max_context_size: Type.Integer({ minimum: 0, description: 'Tokens' }),
    capabilities: Type.Optional(Type.Array(Type.String())),
    support_efforts: Type.Optional(Type.Array(Type.String())),
    default_effort: Type.Optional(Type.String())
  })
)
export type ModelItem = Static<typeof ModelItem>

/** Rule for the names of models. */
export const MODEL_NAME = { minLength: 1, maxLength: 1_000, pattern: textWithout('\\u0000-\\u001f\\u007f-\\u009f') }

/** A model as a client declares it (contract 1, Model declaration entry). */
export const ModelEntry = named(
  'ModelDeclaration',
  Type.Object({
    model: Type.String({
      ...MODEL_NAME,
      examples: ['large-1'],
      description:
        "The provider's own name for it, without control characters; the alias, which stands in paths, becomes <provider_id>/<model>"
    }),
    max_context_size: tokens,
    display_name: Type.Optional(name),
    capabilities: Type.Optional(Type.Array(name)),
    max_output_size: Type.Optional(tokens),
    support_efforts: Type.Optional(Type.Array(name)),
    adaptive_thinking: Type.Optional(Type.Boolean())
  })
)
export type ModelEntry = Static<typeof ModelEntry>

/** Most models of one provider, declared or discovered. */
export const MAX_MODELS = 5_000

const fields = {
  type: ProviderType,
  base_url: Type.Optional(
    Type.String({
      examples: ['https://models.example/v1'],
      description: 'Trimmed; empty: none; no placeholder of an environment variable'
    })
  ),
  default_model: Type.Optional(Type.String({ minLength: 1, description: 'One of models[].model' })),
  models: Type.Array(ModelEntry, { minItems: 1, maxItems: MAX_MODELS, description: 'No duplicate model' })
}
const id = Type.String({ minLength: 1, examples: ['work'], description: 'Letters, digits, -, _ and spaces; begins with a letter or digit' })

/** What create and replace have in common. */
export const ProviderBody = Type.Object(fields)
export type ProviderBody = Static<typeof ProviderBody>

export const CreateBody = named(
  'CreateProviderRequest',
  Type.Object({ id, api_key: Type.Optional(Type.String({ description: 'Empty: none' })), ...fields })
)
export type CreateBody = Static<typeof CreateBody>

export const ReplaceBody = named(
  'ReplaceProviderRequest',
  Type.Object({
    new_id: Type.Optional(id),
    api_key: Type.Optional(Type.String({ description: 'Omitted: kept; empty: cleared; else replaced' })),
    ...fields
  })
)
export type ReplaceBody = Static<typeof ReplaceBody>

/** Described only: whoever handles it checks it (`checkedBody`), so that one refusal names all that is wrong. */
const described = (body: TSchema) => Type.Unknown(body)

/** What a refresh found (contract 1, Refresh report). */
export const RefreshReport = named(
  'RefreshReport',
  Type.Object({
    changed: Type.Array(
      Type.Object({
        provider_id: Type.String(),
        provider_name: Type.String(),
        added: Type.Integer({ minimum: 0, description: 'Aliases' }),
        removed: Type.Integer({ minimum: 0, description: 'Aliases' })
      })
    ),
    unchanged: Type.Array(Type.String(), { description: 'Provider ids' }),
    failed: Type.Array(Type.Object({ provider: Type.String(), reason: Type.String() }))
  })
)
export type RefreshReport = Static<typeof RefreshReport>

const loginStatuses = ['authenticated', 'expired', 'revoked', 'unauthenticated'] as const satisfies readonly LoginStatus[]

const Readiness = named(
  'AuthReadiness',
  Type.Object({
    ready: Type.Boolean({ description: 'A provider is configured, a default model is set, and the managed login is not revoked' }),
    providers_count: Type.Integer({ minimum: 0 }),
    default_model: nullable(Type.String()),
    managed_provider: nullable(Type.Object({ name: Type.String(), status: oneOf(loginStatuses) })),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description: 'A default model that does not exist, a configuration file that cannot be used; absent when there is neither'
      })
    )
  })
)

const base = '/api/v1/providers'
const one = `${base}/{provider_id}`
const params = Type.Object({ provider_id: Type.String({ minLength: 1 }) })

export const readAuth = defineRoute({
  method: 'GET',
  operationId: 'getAuthReadiness',
  path: '/api/v1/auth',
  summary: 'Ready for a prompt?',
  query: Type.Object({
    check_model: Type.Optional(
      Type.Boolean({ description: 'Also warn of what else is in the way of a prompt to the default model: credential, address, protocol' })
    )
  }),
  data: Readiness
})

export const listModels = defineRoute({
  method: 'GET',
  path: '/api/v1/models',
  summary: 'Every model alias, in the order of the configuration',
  data: Type.Object({ items: Type.Array(ModelItem) })
})
export const setDefaultModel = defineRoute({
  method: 'POST',
  path: '/api/v1/models/{model_id}:set_default',
  summary: 'Make a model the global default',
  params: Type.Object({ model_id: Type.String({ minLength: 1, description: 'Alias id, URL-encoded' }) }),
  data: Type.Object({ default_model: Type.String({ examples: ['work/large-1'] }), model: ModelItem }),
  errors: [ModelMissing]
})

export const listProviders = defineRoute({
  method: 'GET',
  path: base,
  summary: 'Configured providers, in the order of the configuration',
  data: Type.Object({ items: Type.Array(ProviderItem) })
})
export const createProvider = defineRoute({
  method: 'POST',
  path: base,
  summary: 'Add a provider and its model aliases in one save',
  description: 'Sets default_model when there is none at all: to the default of the provider, else to its first model.',
  body: described(CreateBody),
  data: ProviderItem,
  errors: [ProviderExists],
  status: 201
})
export const readProvider = defineRoute({
  method: 'GET',
  path: one,
  summary: 'One provider, with its stored key',
  params,
  data: ProviderWithKey,
  errors: [ProviderMissing]
})
export const replaceProvider = defineRoute({
  method: 'PUT',
  path: one,
  summary: 'Replace a provider and its aliases in one save; new_id renames it',
  description: 'A rename takes default_provider, default_model and the secondary-model pool along; nothing else moves a default.',
  params,
  body: described(ReplaceBody),
  data: Type.Object({ provider: ProviderItem }),
  errors: [ProviderMissing, ProviderManaged, ProviderExists]
})
export const deleteProvider = defineRoute({
  method: 'DELETE',
  path: one,
  summary: 'Remove a provider and its aliases; defaults stay as they are',
  params,
  data: Type.Null(),
  errors: [ProviderMissing, ProviderManaged],
  status: 204
})
export const refreshProvider = defineRoute({
  method: 'POST',
  path: `${one}:refresh`,
  summary: 'Discover the models of one provider again',
  params,
  data: RefreshReport,
  errors: [ProviderMissing]
})
export const refreshProviders = defineRoute({
  method: 'POST',
  path: `${base}:refresh`,
  summary: 'Discover the models of all providers again',
  data: RefreshReport
})
export const refreshLogins = defineRoute({
  method: 'POST',
  operationId: 'refreshLoginProviders',
  path: `${base}:refresh_oauth`,
  summary: 'Discover the models of providers with a login again',
  data: RefreshReport
})

/** Sent when a refresh, asked for or scheduled, changed the aliases of at least one provider. */
export const modelCatalogChanged = defineEvent({
  type: 'event.model_catalog.changed',
  scope: 'global',
  durable: true,
  summary: 'A refresh changed model aliases',
  payload: RefreshReport
})
