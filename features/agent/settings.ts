/** What an agent is set to: recorded on every change, the last record counts. And the tool policy that follows from it. */
import { AppError, defineSlot, invalid, Type } from '../../kernel/index.ts'
import { defineRecord, recordTypes, type StateSpec } from '../history/index.ts'
import type { Llm, ResolvedModel } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { meansTool } from '../tools/index.ts'
import { type AgentProfile, defaultProfile } from './extension-points.ts'
import { builtinProfiles } from './prompt/profile.ts'
import type { AgentSettings } from './service.ts'

export const settingsRecord = defineRecord(
  'agent.settings',
  Type.Object({
    model: Type.Optional(Type.String()),
    model_by_default: Type.Optional(Type.Boolean({ description: 'nobody chose the model' })),
    thinking: Type.Optional(Type.String()),
    profile: Type.Optional(Type.String()),
    disabled_tools: Type.Optional(Type.Unsafe<readonly string[]>(Type.Array(Type.String())))
  })
)
/** The system prompt as it was rendered, and the tools of the profile (absent: all); `disabled`: the tools that were off then. */
export const promptRecord = defineRecord(
  'agent.prompt',
  Type.Object({
    profile: Type.String(),
    disabled: Type.String(),
    compactions: Type.Optional(Type.Integer({ description: 'how often the context had been made smaller' })),
    basis: Type.Optional(Type.String({ description: 'what the text followed from: another one renders it anew' })),
    date: Type.Optional(Type.String({ description: 'the date that the text says' })),
    text: Type.String(),
    tools: Type.Optional(Type.Unsafe<readonly string[]>(Type.Array(Type.String()))),
    disallowed_tools: Type.Optional(Type.Unsafe<readonly string[]>(Type.Array(Type.String())))
  })
)

/** Tools of a profile: names and globs; without `tools` all, without `disallowed_tools` all of those. */
export type ToolRange = Pick<AgentProfile, 'tools' | 'disallowed_tools'>

/** A profile as it was when the system prompt was rendered. */
export interface RenderedPrompt extends ToolRange {
  readonly profile: string
  readonly disabled: string
  readonly compactions?: number
  readonly basis?: string
  readonly date?: string
  readonly text: string
}

/** What an agent was bound to last. */
export interface Bound {
  readonly settings: AgentSettings
  readonly prompt?: RenderedPrompt
}
export const boundState: StateSpec<Bound> = {
  name: 'agent.bound',
  version: 1,
  records: recordTypes(settingsRecord, promptRecord),
  initial: () => ({ settings: {} }),
  reduce(state, record) {
    if (settingsRecord.is(record)) {
      const { type: _type, time: _time, ...settings } = record
      return { ...state, settings }
    }
    if (!promptRecord.is(record)) return state
    const { type: _type, time: _time, ...prompt } = record
    return { ...state, prompt }
  }
}

const none: readonly string[] = []

/** Tools that the agent's own `disabled_tools` and its profile switch off. A slot, so that the tool policy can look without waiting. */
class ToolLimits {
  disabled = none
  #profile: ({ readonly name: string } & ToolRange) | undefined

  set(settings: AgentSettings, profile: ({ readonly name: string } & ToolRange) | undefined): void {
    this.disabled = settings.disabled_tools ?? none
    this.#profile = profile
  }

  /** Names and globs of the agent's setting and of its profile, where a user wrote it. */
  get entries(): readonly string[] {
    const { tools = none, disallowed_tools = none } = this.#profile ?? {}
    const isOurs = builtinProfiles.some(profile => profile === this.#profile)
    return isOurs ? this.disabled : [...this.disabled, ...tools, ...disallowed_tools]
  }

  /** What is refused follows from these. */
  get basis(): readonly unknown[] {
    return [this.disabled, this.#profile]
  }

  /** Why the profile has no such tool, for the model. */
  refuses(tool: string): string | undefined {
    const { name, tools, disallowed_tools = [] } = this.#profile ?? {}
    const isIn = (entry: string) => meansTool(entry, tool)
    const refused = (tools && !tools.some(isIn)) || disallowed_tools.some(isIn)
    return refused ? `The tool ${tool} is not available to the profile ${name}.` : undefined
  }
}
export const ToolLimitsSlot = defineSlot<ToolLimits, AgentHost>('agent-tool-limits', () => new ToolLimits())

/** The date that the system prompt of an agent says, for whoever tells it the date. */
export const PromptDateSlot = defineSlot<{ date?: string | undefined }, AgentHost>('agent-prompt-date', () => ({}))

/** Tools that are off by name: by the agent's own setting, by those of the agents it comes from, and by the main agent's, which is the session's. */
export function disabledTools(agent: AgentHost): readonly string[] {
  const own = agent.get(ToolLimitsSlot).disabled
  const parent = parentOf(agent)
  return parent ? [...new Set([...disabledTools(parent), ...own])] : own
}

/** What refusals follow from: those of the agents it comes from, too. */
export function toolLimits(agent: AgentHost): readonly unknown[] {
  const own = agent.get(ToolLimitsSlot).basis
  const parent = parentOf(agent)
  return parent ? [...toolLimits(parent), ...own] : own
}

function parentOf({ id, record, session }: AgentHost): AgentHost | undefined {
  const parent = record.type === 'main' ? undefined : session.agent(record.parent_agent_id ?? 'main')
  return parent?.id === id ? undefined : parent
}

/** Why a tool is off for an agent, for the model. */
export function refusalOf(agent: AgentHost, tool: string): string | undefined {
  if (disabledTools(agent).some(entry => meansTool(entry, tool))) return `The tool ${tool} is disabled in this session.`
  return agent.get(ToolLimitsSlot).refuses(tool)
}

/**
 * The settings after a change. Throws what `llm.resolve` throws for a model, 40001 for an effort the model does not offer, an unknown
 * profile, or another profile than the bound one.
 */
export function changed(
  current: AgentSettings,
  change: Partial<AgentSettings>,
  llm: Llm,
  profiles: readonly AgentProfile[]
): AgentSettings {
  const { model_by_default: _, ...chosen } = current
  const next: AgentSettings = {
    ...(change.model === undefined ? current : chosen),
    ...change,
    ...(change.thinking === undefined ? {} : { thinking: change.thinking.toLowerCase() })
  }
  const model = change.model === undefined ? undefined : llm.resolve(change.model)
  if (change.thinking !== undefined) {
    const judge = model ?? usable(llm, next.model)
    if (judge) llm.checkEffort(judge, next.thinking ?? '')
  }
  if (change.profile !== undefined && change.profile !== current.profile) {
    const names = profiles.map(profile => profile.name)
    if (!names.includes(change.profile)) throw invalid([{ path: 'profile', message: `unknown profile; known are ${names.join(', ')}` }])
    if (current.profile !== undefined) {
      throw invalid([{ path: 'profile', message: `the agent is bound to the profile ${current.profile}` }])
    }
  }
  return next
}

/** The model with this alias (default: the default one); undefined while it cannot be used: then nobody can judge an effort. */
function usable(llm: Llm, alias: string | undefined): ResolvedModel | undefined {
  try {
    return llm.resolve(alias)
  } catch (error) {
    if (AppError.is(error)) return undefined
    throw error
  }
}

/** Settings with what the first turn binds: the default profile and the default model. Throws when there is no model. */
export function bound(current: AgentSettings, llm: Llm): AgentSettings {
  if (current.model !== undefined && current.profile !== undefined) return current
  const model = current.model === undefined ? { model: llm.resolve().alias, model_by_default: true } : {}
  return { ...current, profile: current.profile ?? defaultProfile, ...model }
}

/** Settings as they count now: a model that nobody chose and that is gone, as after a rename, gives way to the default one. */
export function inForce(settings: AgentSettings, llm: Pick<Llm, 'knows' | 'defaultAlias'>): AgentSettings {
  const { model, model_by_default } = settings
  if (!model_by_default || model === undefined || llm.knows(model)) return settings
  const next = llm.defaultAlias()
  return next !== undefined && llm.knows(next) ? { ...settings, model: next } : settings
}

export function sameSettings(a: AgentSettings, b: AgentSettings): boolean {
  const key = (settings: AgentSettings) =>
    JSON.stringify([settings.model, settings.model_by_default, settings.thinking, settings.profile, settings.disabled_tools])
  return key(a) === key(b)
}
