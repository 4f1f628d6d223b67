/** Wire shapes of capabilities (contract 2, Capability status, Capabilities and plugins). */
import { defineEvent, defineRoute, errorSpec, named, oneOf, type Static, Type } from '../../kernel/index.ts'

export const CapabilityMissing = errorSpec('capability_missing', 40418, 'no such capability')
export const InstallRunning = errorSpec('capability_install_running', 40924, 'this capability is being installed')
export const CapabilityUnsupported = errorSpec('capability_unsupported', 40925, 'not supported on this platform')

const text = Type.String()

export const CapabilityStep = named(
  'CapabilityStep',
  Type.Object({
    id: Type.String({ examples: ['plugin'] }),
    state: oneOf(['ok', 'missing', 'failed']),
    detail: Type.Optional(Type.String({ description: 'for people' })),
    optional: Type.Optional(Type.Boolean({ description: 'does not count for the state of the capability' }))
  })
)
export type CapabilityStep = Static<typeof CapabilityStep>

export const InstallState = named(
  'CapabilityInstall',
  Type.Object({
    running: Type.Boolean(),
    step: Type.Optional(
      Type.String({ description: 'what it does now: `plugin`, `mcp-config`, `download`, `app`, `service`, `permissions`' })
    ),
    percent: Type.Optional(Type.Number({ minimum: 0, maximum: 100, description: 'of a download whose size is known' })),
    error: Type.Optional(Type.String({ description: 'why the last one failed' })),
    note: Type.Optional(Type.String({ description: 'what is left to do, or why nothing can be installed' }))
  })
)
export type InstallState = Static<typeof InstallState>

export const CapabilityStatus = named(
  'Capability',
  Type.Object({
    id: Type.String({ examples: ['svc-webbridge'] }),
    pluginId: Type.Optional(text),
    displayName: text,
    description: text,
    supported: Type.Boolean({ description: 'on this platform and architecture' }),
    state: oneOf(['ready', 'partial', 'not_installed', 'unsupported']),
    version: Type.Optional(text),
    steps: Type.Array(CapabilityStep, { description: 'empty where it is not supported' }),
    install: InstallState
  })
)
export type CapabilityStatus = Static<typeof CapabilityStatus>

const params = Type.Object({ capability_id: text })

export const listCapabilities = defineRoute({
  method: 'GET',
  path: '/api/v1/capabilities',
  summary: 'What this machine can be given beside the server, and how much of it is there',
  data: Type.Object({ capabilities: Type.Array(CapabilityStatus) })
})

export const readCapability = defineRoute({
  method: 'GET',
  operationId: 'getCapability',
  path: '/api/v1/capabilities/{capability_id}',
  summary: 'How much of a capability is there, and how far its install is',
  params,
  data: CapabilityStatus,
  errors: [CapabilityMissing]
})

export const installCapability = defineRoute({
  method: 'POST',
  operationId: 'installCapability',
  path: '/api/v1/capabilities/{capability_id}:install',
  summary: 'Begin to install a capability in the background',
  params,
  data: CapabilityStatus,
  errors: [CapabilityMissing, InstallRunning, CapabilityUnsupported]
})

export const capabilityChanged = defineEvent({
  type: 'event.capability.changed',
  summary: 'An install begins, goes on to another step or percent, ends',
  scope: 'global',
  durable: false,
  payload: Type.Object({ capability_id: text, install: InstallState })
})
