/** What packs contribute to agents: profiles, repairs, reminders, blocks of the system prompt. */
import { extensionPoint } from '../../kernel/index.ts'
import type { History, HistoryRecord } from '../history/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { TurnInfo } from './hooks.ts'

/** Profile of agents to which none was given. */
export const defaultProfile = 'agent'

/** A way of working: role text and tools. Bound to an agent once, for good. */
export interface AgentProfile {
  /** Unique; of two with one name the first counts, built-in ones before all. */
  readonly name: string
  readonly description: string
  /** Added to the system prompt. */
  readonly role: string
  /** In place of the system prompt: a template with the variables of custom prompts (`${base_prompt}`, `${cwd}`, ...). */
  readonly prompt?: string
  /** Tools it may use: names, and globs for those of MCP servers (`mcp__db__*`); undefined: all. */
  readonly tools?: readonly string[]
  /** Of those, tools that it may not use; written in the same way. */
  readonly disallowed_tools?: readonly string[]
  /** In place of the built-in one of its name; else that one counts. */
  readonly override?: boolean
  /** Profiles that its agents may start as subagents, `*`: all. Undefined: those that start none themselves. */
  readonly subagents?: readonly string[]
}

/**
 * Profiles of packs, beside the built-in ones. An agent that is bound to one whose pack has left keeps the system prompt and the tools that were
 * recorded; before its first turn there is nothing to keep, and its turns fail.
 */
export const AgentProfiles = extensionPoint<AgentProfile>('agent-profiles', undefined, {
  name: 'string',
  description: 'string',
  role: 'string'
})

/** Profiles that depend on the session: files of its project. After the built-in ones and those of `AgentProfiles`. */
export interface AgentProfileSource {
  readonly name: string
  /** Now; does no I/O. One that throws has none. */
  profiles(session: Session): readonly AgentProfile[]
}
export const AgentProfileSources = extensionPoint<AgentProfileSource>('agent-profile-sources', undefined, {
  name: 'string',
  profiles: 'function'
})

/**
 * What a pack puts on record when an agent is opened whose process died: the end of what must not stay open (a compaction, a review). Asked
 * once, before the open turn is closed and before anything begins; records and their events come in the order of the packs.
 */
export interface AgentRepair {
  /** Names it in the log. */
  readonly name: string
  /** Empty: nothing was left open. What fails is logged and left as it is. */
  records(agent: AgentHost, history: History): readonly HistoryRecord[] | Promise<readonly HistoryRecord[]>
  /** What the model reads beside the result that is made up for a call that never answered, by call id; asked with `records`. */
  notes?(agent: AgentHost, history: History): Notes | Promise<Notes>
}
type Notes = Readonly<Record<string, string>>

export const AgentRepairs = extensionPoint<AgentRepair>(
  'agent-repairs',
  { records: 'promise', notes: 'promise' },
  { name: 'string', records: 'function' }
)

export interface Injection {
  readonly text: string
  /** Go into the origin, beside `kind` and `variant`. */
  readonly facts?: Readonly<Record<string, unknown>>
}

/** A reminder for the model, asked before every step. What it returns is added to the history as a message of origin `injection`. */
export interface StepInjector {
  /** Variant of the origin: `date_change`. */
  readonly variant: string
  /** undefined: nothing to say now. The text is wrapped in `<system-reminder>` tags; such tags in it are escaped. */
  inject(info: TurnInfo, history: History): Injection | undefined | Promise<Injection | undefined>
}
export const StepInjectors = extensionPoint<StepInjector>(
  'step-injectors',
  { inject: 'promise' },
  { variant: 'string', inject: 'function' }
)

/** What a block says. */
export interface PromptText {
  readonly text: string
  /** For custom prompts, which take in `${name}` what they want. */
  readonly variables?: Readonly<Record<string, string>>
  /** Told as `warning` events when the prompt is rendered. */
  readonly warnings?: readonly PromptWarning[]
}

/** Contract 2, Warning; its severity is `warning`. */
export interface PromptWarning {
  readonly code: string
  readonly message: string
}

/** Blocks of the system prompt, contributed by packs; joined in `order`. The built-in ones stand at 100, 200, 300 and 500. */
export interface PromptBlock {
  readonly name: string
  readonly order: number
  render(agent: AgentHost): string | PromptText | Promise<string | PromptText>
  /**
   * Says shortly what the text follows from (names and times of files). Asked when a turn begins: when the answer is another than at the last
   * rendering, the prompt is rendered anew. Absent: a change shows when something else renders it.
   */
  basis?(agent: AgentHost): string | Promise<string>
}

export const PromptBlocks = extensionPoint<PromptBlock>(
  'prompt-blocks',
  { render: 'promise', basis: 'promise' },
  { name: 'string', order: 'number', render: 'function' }
)
