/** Domains that this pack contributes itself: plain settings that several packs read (contract 1, Configuration object). */
import { oneOf, type Static, Type } from '../../kernel/index.ts'
import { defined, Environment, experimentalFlags, serviceOf } from './environment.ts'
import { reviewSent } from './headers.ts'
import type { ConfigRemark, ConfigSection } from './service.ts'

const flag = Type.Boolean()
const text = Type.String()
const strings = Type.Array(Type.String())
const names = Type.Record(Type.String(), Type.String())
const count = (minimum: number, description?: string) => Type.Integer({ minimum, ...(description ? { description } : {}) })

/** Description of a key that configuration files may have and this server does not use. */
const kept = 'Checked and kept; without effect in this server'

/** Shown to clients; sessions that exist keep their own. */
export const planModeSection: ConfigSection<typeof flag> = { name: 'plan_mode', schema: flag, default: false }
/** Whether new sessions begin in plan mode. */
export const defaultPlanModeSection: ConfigSection<typeof flag> = { name: 'default_plan_mode', schema: flag, default: false }
/** Whether skills of all available directories are merged. */
export const mergeSkillsSection: ConfigSection<typeof flag> = { name: 'merge_all_available_skills', schema: flag, default: true }
/** Directories that are searched for skills as well. */
export const extraSkillDirsSection: ConfigSection<typeof strings> = { name: 'extra_skill_dirs', schema: strings, default: [] }

/** Off unless the user turns it on; the server sends nothing either way. */
export const telemetrySection: ConfigSection<typeof flag> = {
  name: 'telemetry',
  schema: flag,
  default: false,
  overlay: (env, report) => {
    const variables = new Environment(env, variable => report?.(variable, 'is neither on (1, true) nor off (0, false); it counts as on'))
    const set = variables.text('DISABLE_TELEMETRY') !== undefined
    return (variables.flag('DISABLE_TELEMETRY') ?? set) ? false : undefined
  }
}

/** Moments at which a command of the user may run. */
export const hookEvents = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionRequest',
  'PermissionResult',
  'UserPromptSubmit',
  'UserPromptQueued',
  'TurnStarted',
  'Stop',
  'StopFailure',
  'Interrupt',
  'SessionStart',
  'SessionEnd',
  'SessionHeartbeat',
  'SubagentStart',
  'SubagentStop',
  'TaskStarted',
  'PreCompact',
  'PostCompact',
  'Notification'
] as const

const Hooks = Type.Array(
  Type.Object(
    {
      event: oneOf(hookEvents),
      command: Type.String({ minLength: 1 }),
      matcher: Type.Optional(text),
      timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 600, description: 'Seconds' }))
    },
    { additionalProperties: false }
  )
)
/** Commands of the user; one that is mistyped is left out alone. */
export const hooksSection: ConfigSection<typeof Hooks> = {
  name: 'hooks',
  schema: Hooks,
  default: [],
  review: rules =>
    rules.flatMap(({ matcher = '' }, at) =>
      isExpression(matcher) ? [] : [{ path: `${at}.matcher`, message: 'is no regular expression: the hook never runs', refused: false }]
    )
}

function isExpression(text: string): boolean {
  try {
    new RegExp(text)
    return true
  } catch {
    return false
  }
}

const Service = Type.Object({
  base_url: Type.Optional(text),
  api_key: Type.Optional(text),
  oauth: Type.Optional(Type.Object({ storage: oneOf(['file', 'keyring']), key: text, oauth_host: Type.Optional(text) })),
  custom_headers: Type.Optional(names)
})
const Services = Type.Object({ svc_search: Type.Optional(Service), svc_fetch: Type.Optional(Service) })
/** Web search and fetch. A URL from the environment drops the stored credentials: they belong to another host. */
export const servicesSection: ConfigSection<typeof Services> = {
  name: 'services',
  schema: Services,
  default: {},
  secrets: ['*.api_key', '*.oauth', '*.custom_headers'],
  // Tables of other names are nobody's: their fields may be anything.
  review: services =>
    (['svc_search', 'svc_fetch'] as const).flatMap(name => {
      const service = services[name] ?? {}
      const url = service.base_url?.trim() ?? ''
      const isAddress = url === '' || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))
      const wrong = { path: `${name}.base_url`, message: 'must be an address that begins with http:// or https://', refused: true }
      return [...(isAddress ? [] : [wrong]), ...reviewSent(name, service)]
    }),
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({ svc_search: serviceOf(variables, 'WEB_SEARCH'), svc_fetch: serviceOf(variables, 'WEB_FETCH') })
  }
}

const tokenStrategies = ['measured+estimated', 'measured', 'estimated'] as const

const LoopControl = Type.Object({
  max_steps_per_turn: Type.Optional(count(0, 'Absent or 0: unlimited')),
  max_attempts_per_step: Type.Optional(count(0)),
  max_ralph_iterations: Type.Optional(count(-1, kept)),
  reserved_context_size: Type.Optional(count(0, 'Tokens')),
  compaction_trigger_ratio: Type.Optional(Type.Number({ minimum: 0.5, maximum: 0.99 }))
})
/** How long a turn may go on, and when its context is made smaller. */
export const loopControlSection: ConfigSection<typeof LoopControl> = {
  name: 'loop_control',
  schema: LoopControl,
  default: { max_attempts_per_step: 10, reserved_context_size: 50_000, compaction_trigger_ratio: 0.85 },
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({
      max_steps_per_turn: variables.integer('LOOP_MAX_STEPS_PER_TURN'),
      max_attempts_per_step: variables.integer('LOOP_MAX_ATTEMPTS_PER_STEP')
    })
  },
  retired: { max_retries_per_step: 'max_attempts_per_step', max_steps_per_run: 'max_steps_per_turn' }
}

const TokenCounting = Type.Object({ strategy: oneOf(tokenStrategies) })
/** How the size of a context is told: as providers measured it last and estimated behind that, only one of the two. */
export const tokenCountingSection: ConfigSection<typeof TokenCounting> = {
  name: 'token_counting',
  schema: TokenCounting,
  default: { strategy: 'measured+estimated' },
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    const wanted = variables.text('TOKEN_COUNTING_STRATEGY')
    const strategy = tokenStrategies.find(each => each === wanted)
    if (wanted !== undefined && !strategy)
      variables.refuse('TOKEN_COUNTING_STRATEGY', `is none of ${tokenStrategies.join(', ')}; it is ignored`)
    return defined({ strategy })
  }
}

const Background = Type.Object({
  max_running_tasks: Type.Optional(count(1)),
  keep_alive_on_exit: Type.Optional(flag),
  bash_auto_background_on_timeout: Type.Optional(flag),
  bash_task_timeout_s: Type.Optional(Type.Number({ minimum: 0, description: 'Seconds' })),
  kill_grace_period_ms: Type.Optional(count(0)),
  print_wait_ceiling_s: Type.Optional(Type.Number({ minimum: 1, description: kept })),
  print_background_mode: Type.Optional(oneOf(['exit', 'drain', 'steer'], { description: kept })),
  print_max_turns: Type.Optional(count(1, kept))
})
/** Tasks that run beside the conversation. */
export const backgroundSection: ConfigSection<typeof Background> = {
  name: 'background',
  schema: Background,
  default: { keep_alive_on_exit: false, bash_auto_background_on_timeout: true, bash_task_timeout_s: 600, kill_grace_period_ms: 5000 },
  alias: 'task',
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    return defined({
      max_running_tasks: variables.integer('BACKGROUND_MAX_RUNNING_TASKS', 1),
      keep_alive_on_exit: variables.flag('BACKGROUND_KEEP_ALIVE_ON_EXIT')
    })
  }
}

const Subagent = Type.Object({ timeout_ms: count(0) })
/** `timeout_ms`: 0 is none. */
export const subagentSection: ConfigSection<typeof Subagent> = {
  name: 'subagent',
  schema: Subagent,
  default: { timeout_ms: 7_200_000 },
  overlay: (env, report) => defined({ timeout_ms: new Environment(env, report).integer('SUBAGENT_TIMEOUT_MS') })
}

const SecondaryModel = Type.Object({
  default_model: Type.Optional(text),
  models: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Alias to description' })),
  force: Type.Optional(flag),
  model: Type.Optional(Type.String({ description: 'Older form with one model' })),
  max_context_size: Type.Optional(count(1, kept)),
  max_input_size: Type.Optional(count(1, kept)),
  max_output_size: Type.Optional(count(1, kept)),
  capabilities: Type.Optional(Type.Array(text, { description: kept })),
  display_name: Type.Optional(Type.String({ description: kept })),
  reasoning_key: Type.Optional(Type.String({ description: kept })),
  adaptive_thinking: Type.Optional(Type.Boolean({ description: kept })),
  support_efforts: Type.Optional(Type.Array(text, { description: kept })),
  default_effort: Type.Optional(Type.String({ description: kept })),
  off_effort: Type.Optional(Type.String({ description: kept }))
})
/** Models that subagents may use. */
export const secondaryModelSection: ConfigSection<typeof SecondaryModel> = {
  name: 'secondary_model',
  schema: SecondaryModel,
  default: {},
  review: reviewPool
}

/** What makes the pool useless. A patch may still store it, so that it can be put together in steps. */
function reviewPool({ default_model, models, force }: Static<typeof SecondaryModel>): ConfigRemark[] {
  const remarks: ConfigRemark[] = []
  const remark = (path: string, message: string) => remarks.push({ path, message, refused: false })
  if (models && Object.hasOwn(models, 'primary')) remark('models.primary', 'this name is reserved')
  if (models && default_model === undefined) remark('default_model', 'is required beside models')
  if (models && default_model !== undefined && !Object.hasOwn(models, default_model)) remark('default_model', 'is none of models')
  if (force && default_model === undefined) remark('force', 'needs default_model')
  if (force && models) remark('force', 'excludes models')
  return remarks
}

const Experimental = Type.Record(Type.String(), Type.Boolean())
/** Flag id to whether it is on. */
export const experimentalSection: ConfigSection<typeof Experimental> = {
  name: 'experimental',
  schema: Experimental,
  default: {},
  overlay: (env, report) => experimentalFlags(new Environment(env, report))
}

const ModelCatalog = Type.Object({ refresh_interval_ms: count(0, '0: off'), refresh_on_start: flag })
/** When models are discovered again by themselves; `refresh_interval_ms` 0: never. */
export const modelCatalogSection: ConfigSection<typeof ModelCatalog> = {
  name: 'model_catalog',
  schema: ModelCatalog,
  default: { refresh_interval_ms: 21_600_000, refresh_on_start: true }
}

/** All of them. */
export const ownSections = [
  planModeSection,
  defaultPlanModeSection,
  mergeSkillsSection,
  extraSkillDirsSection,
  telemetrySection,
  hooksSection,
  servicesSection,
  loopControlSection,
  tokenCountingSection,
  backgroundSection,
  subagentSection,
  secondaryModelSection,
  experimentalSection,
  modelCatalogSection
] as const
