/** Domains that others own: these count while no active pack contributes one of their name, so that the domain is kept, checked and shown. */
import { oneOf, type Static, Type } from '../../kernel/index.ts'
import { defined, Environment, textOf } from './environment.ts'
import type { ConfigSection } from './service.ts'

const flag = Type.Boolean()
const text = Type.String()
const strings = Type.Array(Type.String())
const count = Type.Integer({ minimum: 0 })
const size = Type.Integer({ minimum: 1 })
const Anything = Type.Object({})
const Records = Type.Record(Type.String(), Anything)
/** A string that nobody may have set. */
const Name = Type.Unsafe<string | undefined>(Type.String())
const Mode = oneOf(['manual', 'yolo', 'auto'])

const providers: ConfigSection<typeof Records> = {
  name: 'providers',
  schema: Records,
  default: {},
  toWire: (value: Static<typeof Records>) =>
    Object.fromEntries(
      Object.entries(value as Record<string, Record<string, unknown>>).map(([id, { type, base_url, default_model, api_key }]) => [
        id,
        defined({
          type: textOf(type) ?? '',
          base_url: textOf(base_url),
          default_model: textOf(default_model),
          has_api_key: textOf(api_key) !== undefined
        })
      ])
    )
}
const models: ConfigSection<typeof Records> = { name: 'models', schema: Records, default: {} }
const permission: ConfigSection<typeof Anything> = { name: 'permission', schema: Anything, default: {} }
const thinking: ConfigSection<typeof Anything> = { name: 'thinking', schema: Anything, default: {} }
const mode: ConfigSection<typeof Mode> = { name: 'default_permission_mode', schema: Mode, default: 'manual' }

const TokenCounting = Type.Object({ strategy: Type.Optional(text) })
const tokenCounting: ConfigSection<typeof TokenCounting> = {
  name: 'token_counting',
  schema: TokenCounting,
  default: {},
  overlay: (env, report) => defined({ strategy: new Environment(env, report).text('TOKEN_COUNTING_STRATEGY') })
}

const Cron = Type.Object({
  disabled: Type.Optional(flag),
  debug: Type.Optional(flag),
  no_jitter: Type.Optional(flag),
  no_stale: Type.Optional(flag),
  manual_tick: Type.Optional(flag),
  clock: Type.Optional(text),
  poll_interval_ms: Type.Optional(size)
})
const cron: ConfigSection<typeof Cron> = {
  name: 'cron',
  schema: Cron,
  default: {},
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({
      disabled: variables.flag('DISABLE_CRON'),
      debug: variables.flag('CRON_DEBUG'),
      no_jitter: variables.flag('CRON_NO_JITTER'),
      no_stale: variables.flag('CRON_NO_STALE'),
      manual_tick: variables.flag('CRON_MANUAL_TICK'),
      clock: variables.text('CRON_CLOCK'),
      poll_interval_ms: variables.integer('CRON_POLL_INTERVAL_MS', 1)
    })
  }
}

const Mcp = Type.Object({ startup_timeout_ms: Type.Optional(count), tool_timeout_ms: Type.Optional(count) })
const mcp: ConfigSection<typeof Mcp> = {
  name: 'mcp',
  schema: Mcp,
  default: {},
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({
      startup_timeout_ms: variables.integer('MCP_STARTUP_TIMEOUT_MS'),
      tool_timeout_ms: variables.integer('MCP_TOOL_TIMEOUT_MS')
    })
  }
}

const Image = Type.Object({ max_edge_px: size, read_byte_budget: size })
const image: ConfigSection<typeof Image> = {
  name: 'image',
  schema: Image,
  default: { max_edge_px: 2000, read_byte_budget: 262_144 },
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({
      max_edge_px: variables.integer('IMAGE_MAX_EDGE_PX', 1),
      read_byte_budget: variables.integer('IMAGE_READ_BYTE_BUDGET', 1)
    })
  }
}

const extraAgentDirs: ConfigSection<typeof strings> = { name: 'extra_agent_dirs', schema: strings, default: [] }
const productSkills: ConfigSection<typeof flag> = {
  name: 'builtin_product_skills',
  schema: flag,
  default: true,
  overlay: (env, report) => new Environment(env, report).flag('BUILTIN_PRODUCT_SKILLS')
}

const Identity = Type.Object({
  name: Type.Optional(text),
  slug: Type.Optional(Type.String({ description: 'Made of the name when absent' }))
})
const identity: ConfigSection<typeof Identity> = {
  name: 'identity',
  schema: Identity,
  default: {},
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({ name: variables.text('IDENTITY_NAME'), slug: variables.text('IDENTITY_SLUG') })
  }
}

/** One for each domain of the API that this pack does not own. */
export const standIns: readonly ConfigSection[] = [
  providers,
  { name: 'default_provider', schema: Name, default: undefined },
  { name: 'default_model', schema: Name, default: undefined },
  models,
  thinking,
  mode,
  permission,
  tokenCounting,
  cron,
  mcp,
  image,
  extraAgentDirs,
  productSkills,
  identity
]
