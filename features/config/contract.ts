/** Wire of the config pack (contract 1, Configuration). */
import { defineEvent, defineRoute, mostDetails, named, oneOf, Type } from '../../kernel/index.ts'

const open = Type.Record(Type.String(), Type.Unknown())

const ProviderEntry = named(
  'ConfigProvider',
  Type.Object({
    type: Type.String({ description: 'Wire protocol; empty when the record names none' }),
    base_url: Type.Optional(Type.String()),
    default_model: Type.Optional(Type.String()),
    has_api_key: Type.Boolean()
  })
)

const mode = oneOf(['manual', 'yolo', 'auto'])

/** The effective configuration without secrets. The mounted routes know the inner shape of every domain, and the domains of further packs. */
export const ConfigObject = Type.Object(
  {
    providers: Type.Record(Type.String(), ProviderEntry),
    default_provider: Type.Optional(Type.String()),
    default_model: Type.Optional(Type.String({ description: 'Model alias id' })),
    models: Type.Record(Type.String(), open, { description: 'Model alias id to model record' }),
    thinking: open,
    yolo: Type.Boolean({ description: 'True when default_permission_mode is yolo' }),
    default_permission_mode: mode,
    permission: open,
    raw: Type.Record(Type.String(), Type.Unknown(), { description: 'Parsed content of the file, in its own spelling, without secrets' })
  },
  { description: 'Keys at the top are snake_case, those inside a domain camelCase' }
)

/**
 * Partial configuration. Keys may be snake_case or camelCase at any depth. Absent and null keep, tables merge, arrays and scalars replace.
 * The mounted route knows every domain.
 */
export const ConfigPatch = Type.Record(Type.String(), Type.Unknown())

export const readConfig = defineRoute({ method: 'GET', path: '/api/v1/config', summary: 'Effective configuration', data: ConfigObject })

export const patchConfig = defineRoute({
  method: 'POST',
  path: '/api/v1/config',
  summary: 'Merge a patch into the configuration',
  description:
    'All or nothing: with invalid values nothing is written, and 40001 names them all. What GET answered changes nothing when it is sent back.',
  body: ConfigPatch,
  data: ConfigObject
})

/** What is not used as written is something else than before; none of it is left when the list is empty. */
export const configWarning = defineEvent({
  type: 'event.config.warning',
  scope: 'global',
  durable: true,
  perServer: true,
  summary: 'Other things than before in the configuration are not used as written',
  payload: Type.Object({
    warnings: Type.Array(Type.Object({ domain: Type.Optional(Type.String({ description: 'Top-level key' })), message: Type.String() }), {
      description: `All of them, at most ${mostDetails}; empty: none is left`
    })
  })
})

/** Sent after every change of the file: a patch, an edit in an editor, another process. */
export const configChanged = defineEvent({
  type: 'event.config.changed',
  scope: 'global',
  durable: true,
  perServer: true,
  summary: 'The configuration changed',
  payload: Type.Object({
    changed_fields: Type.Array(Type.String(), { description: 'Top-level keys' }),
    changedFields: Type.Array(Type.String(), { description: 'The same list, for clients that read this spelling' }),
    config: ConfigObject
  })
})
