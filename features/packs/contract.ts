/** Wire shapes, routes and errors of the packs of this server. */
import { defineRoute, errorSpec, named, nullable, oneOf, type Static, Time, Type } from '../../kernel/index.ts'

/** No pack of this name: neither in this server nor configured. */
export const PackMissing = errorSpec('pack_missing', 40430, 'pack not found')
/** The pack is required by the deployment, or answers these very requests. */
export const PackHeld = errorSpec('pack_held', 40930, 'the pack cannot be taken out')
/** `[packs]` of the configuration has a fault; nothing was changed. */
export const DeploymentFaulty = errorSpec('deployment_faulty', 40931, 'the packs of the configuration cannot be used')
/** What the file of an active pack has become cannot be imported or is no pack; the one before goes on. */
export const PackUnusable = errorSpec('pack_unusable', 40932, 'the new version of the pack cannot be used')

const Options = Type.Record(Type.String(), Type.Unknown())

export const PackItem = named(
  'Pack',
  Type.Object({
    name: Type.String(),
    state: oneOf(['Pending', 'Activating', 'Active', 'Unloading', 'Failed', 'Unloaded', 'Disabled'], {
      description: '`Unloaded` for this run, `Disabled` by the deployment'
    }),
    version: nullable(Type.String()),
    description: nullable(Type.String()),
    area: nullable(Type.String()),
    required: Type.Boolean({ description: 'The server was started on condition that it is active' }),
    needs: Type.Array(Type.String(), { description: 'Services' }),
    provides: Type.Array(Type.String(), { description: 'Services' }),
    waiting_for: Type.Array(Type.String(), { description: 'Needed services that nobody provides yet' }),
    error: nullable(Type.String({ description: 'Why it failed' })),
    faults: nullable(
      Type.Object({ count: Type.Integer({ minimum: 1 }), last: Type.String() }, { description: 'What went wrong since it was activated' })
    ),
    process: nullable(
      Type.Object(
        {
          pid: nullable(Type.Integer()),
          memory_bytes: nullable(Type.Integer({ description: 'As it was looked at last' })),
          restarts: Type.Integer({ description: 'How often it was started anew because it had ended by itself' })
        },
        { description: 'Of a pack that runs in a process of its own' }
      )
    ),
    setup_ms: nullable(Type.Number({ description: 'How long its last setup took' })),
    active_since: nullable(Time),
    options_schema: nullable(Type.Record(Type.String(), Type.Unknown(), { description: 'JSON schema of its deployment options' })),
    option_defaults: Options,
    options: nullable(
      Type.Record(Type.String(), Type.Unknown(), { description: 'In effect, without secrets; null when what is configured does not fit' })
    )
  })
)
export type PackItem = Static<typeof PackItem>

const params = Type.Object({ name: Type.String({ minLength: 1, description: 'Name of the pack' }) })
const scope = 'packs'

export const listPacks = defineRoute({
  method: 'GET',
  path: '/api/v1/packs',
  summary: 'Packs of this server with state, timings and options, also unloaded and disabled ones',
  scope,
  data: Type.Object({ items: Type.Array(PackItem) })
})
export const loadPack = defineRoute({
  method: 'POST',
  path: '/api/v1/packs/{name}:load',
  summary: 'Bring a pack up for this run, a disabled one as well; one that fails is answered with its error',
  scope,
  params,
  data: PackItem,
  errors: [PackMissing]
})
export const unloadPack = defineRoute({
  method: 'POST',
  path: '/api/v1/packs/{name}:unload',
  summary: 'Take a pack out for this run; what needs it waits',
  scope,
  params,
  data: PackItem,
  errors: [PackMissing, PackHeld]
})
export const reloadPack = defineRoute({
  method: 'POST',
  path: '/api/v1/packs/{name}:reload',
  summary: 'Unload and load a pack; the file of a third-party pack is read anew, and one that cannot be used changes nothing',
  scope,
  params,
  data: PackItem,
  errors: [PackMissing, PackHeld, PackUnusable]
})
export const refreshPacks = defineRoute({
  method: 'POST',
  path: '/api/v1/packs:refresh',
  summary: 'Take in `[packs]` of config.toml now, without waiting for its watcher',
  scope,
  data: Type.Object({
    loaded: Type.Array(Type.String()),
    unloaded: Type.Array(Type.String()),
    reloaded: Type.Array(Type.String()),
    warnings: Type.Array(Type.String()),
    items: Type.Array(PackItem)
  }),
  errors: [DeploymentFaulty, PackHeld]
})
