/** Wire of the managed login (contract 1, Managed login and usage), its options and what it keeps on disk. */
import { defineRoute, defineStore, milliseconds, named, nullable, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { MANAGED_PROVIDER } from '../providers/index.ts'

/** Where an account may live (contract 1, GET oauth/region). */
export const regions = ['mainland-cn', 'global'] as const
export type Region = (typeof regions)[number]
/** Without any hint. */
export const defaultRegion: Region = 'mainland-cn'

const Hosts = Type.Object({
  oauth_host: Type.Optional(Type.String({ description: 'Origin of the authorization server' })),
  api_base_url: Type.Optional(Type.String({ description: 'Base URL of the managed API' }))
})

/** Deployment options (`[packs.config.oauth]`). Hosts and client id have no default: without them a login answers what to set. */
export const Options = Type.Object({
  client_id: Type.Optional(Type.String({ description: 'Client id at the authorization server; SVC_CODE_OAUTH_CLIENT_ID wins' })),
  ...Hosts.properties,
  regions: Type.Optional(
    Type.Object(
      { 'mainland-cn': Type.Optional(Hosts), global: Type.Optional(Hosts) },
      { description: 'Hosts of one region; they win over the common ones' }
    )
  ),
  account_timeout_ms: milliseconds({
    minimum: 1,
    default: 8000,
    description: 'How long the account service may take for usage or user info, ms'
  }),
  poll_unit_ms: milliseconds({ minimum: 1, default: 1000, description: 'Length of a second of polling and retry waits; for tests' })
})
export type Options = Static<typeof Options>

/** Content of `<home>/credentials/<slot>.json`. Empty tokens: the authorization server refused the grant. */
export const Credential = Type.Object({
  access_token: Type.String(),
  refresh_token: Type.String(),
  expires_at: Type.Number({ description: 'Epoch seconds' }),
  scope: Type.String(),
  token_type: Type.String(),
  expires_in: Type.Number({ description: 'Seconds the access token lived when it was issued' })
})
export type Credential = Static<typeof Credential>
/** Mode 0600; a damaged file is quarantined. */
export const credentialStore = defineStore({ name: 'credentials', kind: 'document', value: Credential })

const flowStatuses = ['pending', 'authenticated', 'denied', 'expired', 'cancelled'] as const
/** State of a login flow (contract 1, Managed login flow). */
export type FlowStatus = (typeof flowStatuses)[number]

const flowFields = {
  flow_id: Type.String({ description: 'oauth_<uuid>' }),
  provider: Type.String(),
  verification_uri: Type.String(),
  verification_uri_complete: Type.String({ description: 'Carries the user code; to be opened in a browser' }),
  user_code: Type.String(),
  expires_in: Type.Integer({ description: 'Seconds left' }),
  expires_at: Time,
  interval: Type.Integer({ description: 'Seconds between two polls' })
}
const PendingFlow = Type.Object({ ...flowFields, status: Type.Literal('pending') })
const FastPath = Type.Object({ flow_id: Type.String(), provider: Type.String(), status: Type.Literal('authenticated') })

/** What polling sees of a flow. Fields of the code are empty for a login that needed none. */
export const FlowSnapshot = named(
  'LoginFlow',
  Type.Object({
    ...flowFields,
    status: oneOf(flowStatuses),
    resolved_at: Type.Optional(Time),
    error_message: Type.Optional(Type.String({ description: 'Why the flow failed' }))
  })
)
export type FlowSnapshot = Static<typeof FlowSnapshot>

/** A failure that is an answer (contract 1, Usage and account information). */
const InBandError = named(
  'AccountError',
  Type.Object({
    kind: Type.Literal('error'),
    message: Type.String(),
    status: Type.Optional(Type.Integer({ description: 'HTTP status of the account service, when there is one' }))
  })
)
export type InBandError = Static<typeof InBandError>

/** A quota window; `used` and `limit` in units of the account service. */
const UsageRow = named(
  'AccountQuota',
  Type.Object({
    name: Type.Optional(Type.String()),
    window: Type.Optional(Type.Object({ duration: Type.Integer(), unit: oneOf(['minute', 'hour', 'day', 'week']) })),
    used: Type.Integer(),
    limit: Type.Integer(),
    reset_at: Type.Optional(Type.String())
  })
)
export type UsageRow = Static<typeof UsageRow>
const Usage = named(
  'AccountUsage',
  Type.Object({
    kind: Type.Literal('ok'),
    summary: nullable(UsageRow),
    limits: Type.Array(UsageRow),
    extra_usage: nullable(
      Type.Object({
        balance_cents: Type.Integer(),
        total_cents: Type.Integer(),
        monthly_charge_limit_enabled: Type.Boolean(),
        monthly_charge_limit_cents: Type.Integer(),
        monthly_used_cents: Type.Integer(),
        currency: Type.String()
      })
    )
  })
)
export type Usage = Static<typeof Usage>

/** The account service decides whether it counts or names levels and states. */
const Scalar = Type.Union([Type.String(), Type.Number()])
const UserInfo = named(
  'AccountProfile',
  Type.Object({
    kind: Type.Literal('ok'),
    userInfo: Type.Object({
      userId: Type.String(),
      nickname: Type.String(),
      status: Scalar,
      region: Type.String(),
      userLevel: Scalar,
      userLevelName: Type.String(),
      domain: Scalar,
      domainName: Type.String(),
      globalId: Type.Optional(Type.String()),
      bio: Type.Optional(Type.String()),
      avatar: Type.Optional(Type.String()),
      username: Type.Optional(Type.String()),
      email: Type.Optional(Type.String()),
      phone: Type.Optional(Type.Object({ countryCode: Type.String(), number: Type.String() })),
      createdTime: Type.Optional(Scalar),
      lastLoginTime: Type.Optional(Scalar)
    })
  })
)
export type UserInfo = Static<typeof UserInfo>

const provider = Type.String({ default: MANAGED_PROVIDER, minLength: 1 })
const query = Type.Object({ provider: Type.Optional(provider) })
const path = '/api/v1/oauth/login'

export const startLogin = defineRoute({
  method: 'POST',
  operationId: 'startLogin',
  path,
  summary: 'Start the device-code login',
  description:
    'A pending flow of the provider is cancelled first. With a valid login the answer is `authenticated` at once. 40001 names the settings that are missing.',
  body: Type.Object({
    provider: Type.Optional(provider),
    region: Type.Optional(oneOf(regions, { description: 'Overrides the region for this flow, unless hosts are set by the environment' }))
  }),
  data: Type.Union([PendingFlow, FastPath])
})
export const readLogin = defineRoute({
  method: 'GET',
  operationId: 'getLogin',
  path,
  summary: 'State of the last login flow; null when none was started',
  query,
  data: nullable(FlowSnapshot)
})
export const cancelLogin = defineRoute({
  method: 'DELETE',
  operationId: 'cancelLogin',
  path,
  summary: 'Cancel the pending login flow',
  description: 'A login that still waits for its code counts as pending. Without a pending one `status` is the last state.',
  query,
  data: Type.Object({ cancelled: Type.Boolean(), status: oneOf(flowStatuses) })
})
export const logout = defineRoute({
  method: 'POST',
  operationId: 'logout',
  path: '/api/v1/oauth/logout',
  summary: 'Discard the login and remove the managed provider from the configuration',
  description: 'A pending flow is cancelled. Another provider goes only if it has a login of its own.',
  body: Type.Object({ provider: Type.Optional(provider) }),
  data: Type.Object({ logged_out: Type.Literal(true), provider: Type.String() })
})
export const readUsage = defineRoute({
  method: 'GET',
  path: '/api/v1/oauth/usage',
  summary: 'Quota of the account, asked live; failures are in-band',
  query,
  data: Type.Union([Usage, InBandError])
})
export const readUserInfo = defineRoute({
  method: 'GET',
  path: '/api/v1/oauth/userinfo',
  summary: 'Profile of the account, asked live; failures are in-band',
  query,
  data: Type.Union([UserInfo, InBandError])
})
export const readRegion = defineRoute({
  method: 'GET',
  path: '/api/v1/oauth/region',
  summary: 'Region of the account, derived without network access',
  data: Type.Object({ region: oneOf(regions) })
})
