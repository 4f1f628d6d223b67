/** Domains that this pack contributes itself: plain settings that several packs read (contract 1, Configuration object). */
import { oneOf, type Static, Type } from '../../kernel/index.ts'
import { booleanOf, defined, experimentalFlags, integerOf, numberOf, serviceOf, textOf } from './environment.ts'
import type { ConfigSection } from './service.ts'

const flag = Type.Boolean()
const text = Type.String()
const strings = Type.Array(Type.String())
const names = Type.Record(Type.String(), Type.String())
const count = (minimum: number, description?: string) => Type.Integer({ minimum, ...(description ? { description } : {}) })

export const planModeSection: ConfigSection<typeof flag> = { name: 'plan_mode', schema: flag, default: false }
export const defaultPlanModeSection: ConfigSection<typeof flag> = { name: 'default_plan_mode', schema: flag, default: false }
export const mergeSkillsSection: ConfigSection<typeof flag> = { name: 'merge_all_available_skills', schema: flag, default: true }
export const extraSkillDirsSection: ConfigSection<typeof strings> = { name: 'extra_skill_dirs', schema: strings, default: [] }

/** Off unless the user turns it on; the server sends nothing either way. */
export const telemetrySection: ConfigSection<typeof flag> = {
  name: 'telemetry',
  schema: flag,
  default: false,
  overlay: env => (booleanOf(env.SVC_CODE_DISABLE_TELEMETRY) ? false : undefined)
}

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
export const hooksSection: ConfigSection<typeof Hooks> = { name: 'hooks', schema: Hooks, default: [] }

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
  overlay: env =>
    defined({
      svc_search: serviceOf(env.SVC_CODE_WEB_SEARCH_BASE_URL, env.SVC_CODE_WEB_SEARCH_API_KEY),
      svc_fetch: serviceOf(env.SVC_CODE_WEB_FETCH_BASE_URL, env.SVC_CODE_WEB_FETCH_API_KEY)
    })
}

const LoopControl = Type.Object({
  max_steps_per_turn: Type.Optional(count(0, 'Absent or 0: unlimited')),
  max_attempts_per_step: Type.Optional(count(0)),
  max_ralph_iterations: Type.Optional(count(-1)),
  reserved_context_size: Type.Optional(count(0, 'Tokens')),
  compaction_trigger_ratio: Type.Optional(Type.Number({ minimum: 0.5, maximum: 0.99 }))
})
export const loopControlSection: ConfigSection<typeof LoopControl> = {
  name: 'loop_control',
  schema: LoopControl,
  default: { max_attempts_per_step: 10, reserved_context_size: 50_000, compaction_trigger_ratio: 0.85 },
  overlay: env =>
    defined({
      max_steps_per_turn: integerOf(env.SVC_CODE_LOOP_MAX_STEPS_PER_TURN),
      max_attempts_per_step: integerOf(env.SVC_CODE_LOOP_MAX_ATTEMPTS_PER_STEP)
    }),
  retired: { max_retries_per_step: 'max_attempts_per_step', max_steps_per_run: 'max_steps_per_turn' }
}

const Background = Type.Object({
  max_running_tasks: Type.Optional(count(1)),
  keep_alive_on_exit: Type.Optional(flag),
  bash_auto_background_on_timeout: Type.Optional(flag),
  bash_task_timeout_s: Type.Optional(Type.Number({ minimum: 0, description: 'Seconds' })),
  kill_grace_period_ms: Type.Optional(count(0)),
  print_wait_ceiling_s: Type.Optional(Type.Number({ minimum: 1 })),
  print_background_mode: Type.Optional(oneOf(['exit', 'drain', 'steer'])),
  print_max_turns: Type.Optional(count(1))
})
export const backgroundSection: ConfigSection<typeof Background> = {
  name: 'background',
  schema: Background,
  default: { keep_alive_on_exit: false, bash_auto_background_on_timeout: true, bash_task_timeout_s: 600, kill_grace_period_ms: 5000 },
  overlay: env =>
    defined({
      max_running_tasks: integerOf(env.SVC_CODE_BACKGROUND_MAX_RUNNING_TASKS),
      keep_alive_on_exit: booleanOf(env.SVC_CODE_BACKGROUND_KEEP_ALIVE_ON_EXIT)
    })
}

const Subagent = Type.Object({ timeout_ms: count(0) })
export const subagentSection: ConfigSection<typeof Subagent> = {
  name: 'subagent',
  schema: Subagent,
  default: { timeout_ms: 7_200_000 },
  overlay: env => defined({ timeout_ms: numberOf(env.SVC_CODE_SUBAGENT_TIMEOUT_MS) })
}

const SecondaryModel = Type.Object({
  default_model: Type.Optional(text),
  models: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Alias to description' })),
  force: Type.Optional(flag),
  model: Type.Optional(Type.String({ description: 'Older form with one model' })),
  max_context_size: Type.Optional(count(1)),
  max_input_size: Type.Optional(count(1)),
  max_output_size: Type.Optional(count(1)),
  capabilities: Type.Optional(strings),
  display_name: Type.Optional(text),
  reasoning_key: Type.Optional(text),
  adaptive_thinking: Type.Optional(flag),
  support_efforts: Type.Optional(strings),
  default_effort: Type.Optional(text),
  off_effort: Type.Optional(text)
})
export const secondaryModelSection: ConfigSection<typeof SecondaryModel> = { name: 'secondary_model', schema: SecondaryModel, default: {} }

const Experimental = Type.Record(Type.String(), Type.Boolean())
/** Flags: `SVC_CODE_EXPERIMENTAL_<ID>` sets one, `SVC_CODE_EXPERIMENTAL_FLAG` all known ones. */
export const experimentalSection: ConfigSection<typeof Experimental> = {
  name: 'experimental',
  schema: Experimental,
  default: {},
  overlay: experimentalFlags
}

const ModelCatalog = Type.Object({ refresh_interval_ms: count(0, '0: off'), refresh_on_start: flag })
export const modelCatalogSection: ConfigSection<typeof ModelCatalog> = {
  name: 'model_catalog',
  schema: ModelCatalog,
  default: { refresh_interval_ms: 21_600_000, refresh_on_start: true }
}

export const ownSections = [
  planModeSection,
  defaultPlanModeSection,
  mergeSkillsSection,
  extraSkillDirsSection,
  telemetrySection,
  hooksSection,
  servicesSection,
  loopControlSection,
  backgroundSection,
  subagentSection,
  secondaryModelSection,
  experimentalSection,
  modelCatalogSection
] as const

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

/** Stand in for domains of the contract whose owners are not part of this deployment: kept and shown, checked loosely. */
export const standIns: readonly ConfigSection[] = [
  providers,
  { name: 'default_provider', schema: Name, default: undefined },
  { name: 'default_model', schema: Name, default: undefined },
  models,
  thinking,
  mode,
  permission
]
