/** Tools as values: what a pack contributes, and what a call of it will do. */
import type { TObject } from '@sinclair/typebox'
import { extensionPoint } from '../../kernel/index.ts'
import type { LlmContent } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** Shown in approvals and tool events (`tool_input_display`); union on `kind`. */
export type ToolDisplay = { readonly kind: string } & Readonly<Record<string, unknown>>

export interface ToolUpdate {
  readonly kind: 'stdout' | 'stderr' | 'progress' | 'status' | 'custom'
  readonly text?: string
  readonly percent?: number
  readonly customKind?: string
  readonly customData?: unknown
  readonly replace?: boolean
}

/** Resources a call touches; paths absolute. Calls that do not conflict run side by side. `exclusive` conflicts with all. */
export type ToolAccess =
  | { readonly kind: 'exclusive' }
  | {
      readonly kind: 'read' | 'write' | 'readwrite' | 'search'
      readonly path: string
      /** Everything below the path, too. */
      readonly recursive?: boolean
      /** The file has further names (hard links), and the change shows under all of them. */
      readonly shared?: boolean
    }
  /** Something that is no file, by a name of its pack (`task:bash-1`). */
  | { readonly kind: 'look' | 'change'; readonly thing: string }

/** Those of files. */
export type FileAccess = Extract<ToolAccess, { readonly path: string }>

/** Why a call fails its turn: an engine error code, and a sentence for people. */
export interface TurnFault {
  readonly code: string
  readonly message: string
}

export interface ToolResult {
  readonly output: string | readonly LlmContent[]
  readonly is_error?: boolean
  /** Appended for the model only. */
  readonly note?: string
  /** Ends the turn after this batch. */
  readonly stop_turn?: boolean
  /** Beside `stop_turn`: the turn ends as failed, and why. */
  readonly fail_turn?: TurnFault
  /** Set when the text was already shortened by the tool. */
  readonly truncated?: boolean
}

export interface ToolEnv {
  readonly agent: AgentHost
  /** Working directory of the session, absolute. */
  readonly cwd: string
  readonly turn_id: number
  readonly tool_call_id: string
  readonly now: () => Date
  /** Calls of the same response before this one that will run: what they do has not happened while this one is prepared and checked. */
  readonly earlier: readonly EarlierCall[]
}

export interface EarlierCall {
  /** Name of the tool. */
  readonly tool: string
  readonly accesses: readonly ToolAccess[]
}

/** One of the things of a call that permission rules judge: a command of a line, the file that is touched, the pattern searched for. */
export interface RulePart {
  /** Narrow reading, for rules that allow: the argument pattern stands for all of this part and for nothing else. */
  covers(pattern: string): boolean
  /** Wide reading, for rules that deny or ask: the argument pattern means this part, or something in it. */
  names(pattern: string): boolean
  /** It may do what the pattern means, but need not: under a denying or asking rule it is asked for. Absent: no. */
  suspects?(pattern: string): boolean
}

/** A call that was understood: what it will do, before anything happens and whatever the world looks like. */
export interface ToolExecution {
  /** Short phrase: `Running: ls -la`. */
  readonly description: string
  readonly display?: ToolDisplay
  readonly accesses: readonly ToolAccess[]
  /**
   * What "approve for this session" covers: calls of this tool with the very same text (the command line, the file's path). Taken as it is,
   * nothing needs escaping. Absent: every call of the tool.
   */
  readonly approval_argument?: string
  /** What rules with an argument judge; a rule must allow every part, and denies by any. Absent: `approval_argument`, matched as a text. */
  readonly parts?: readonly RulePart[]
  /** The call does something that its parts do not name. Under a denying or asking rule with an argument it is asked for. */
  readonly uncertain?: boolean
  /**
   * Throws ToolRefusal when the call would be refused whatever anybody consents to: a file that is missing, a text that does not fit. Called
   * when no guard and no rule denied the call and somebody is about to be asked, or is to review it; a call that needs neither goes straight to
   * `run`, which refuses the same.
   */
  check?(signal: AbortSignal): Promise<void>
  /**
   * Somebody looks at what the call is about (a plan, a goal), whatever the permission for it was: called when it may run, after `check`
   * and before it is reported as started. A result settles the call in place of `run`, and need not be an error; undefined: the call runs.
   */
  review?(signal: AbortSignal): Promise<ToolResult | undefined>
  /**
   * The signal aborts with the turn, when the call takes longer than it may, and when the pack of the tool leaves. `told` resolves when clients
   * have heard that the call began.
   */
  run(progress: (update: ToolUpdate) => void, signal: AbortSignal, told: Promise<void>): Promise<ToolResult>
  /** What stands behind the call in its response was asked for in a state that it ends, and is skipped; the turn goes on. */
  readonly ends_response?: boolean
  /** How long `run` may take, ms; 0: as long as it wants, because it has limits of its own. Default: `call_limit_ms` (deployment option). */
  readonly limit_ms?: number
}

export interface Tool<P extends TObject = TObject> {
  /** PascalCase; part of the observable contract. */
  readonly name: string
  readonly description: string
  /** Closed object schema. */
  readonly parameters: P
  readonly source: 'builtin' | 'skill' | 'mcp'
  /** Understands the arguments; throws ToolRefusal for problems the model should read. */
  // biome-ignore lint/suspicious/noExplicitAny: a list of tools holds many parameter shapes; the registry validates before calling
  prepare(args: any, env: ToolEnv): Promise<ToolExecution> | ToolExecution
  /** JSON Schema for the model when it differs from `parameters` (MCP). */
  readonly model_schema?: Readonly<Record<string, unknown>>
}

/** Thrown by `prepare` (or `run`): becomes an error result with this text. */
export class ToolRefusal extends Error {}

export const Tools = extensionPoint<Tool>(
  'tools',
  { prepare: 'promise', check: 'promise', review: 'promise', run: 'promise' },
  { name: 'string', description: 'string', parameters: 'object', prepare: 'function' }
)

/**
 * Tools that depend on the agent, or that come and go: those of MCP servers, those that only some agents have, one whose description lists
 * what its agent may delegate to.
 */
export interface ToolSet {
  readonly name: string
  /** Names that it has for one agent or another, now or later; those that begin with `mcp__` need not be among them. */
  readonly names?: readonly string[]
  /**
   * The tools of this agent at this moment, in a stable order. Asked when a turn begins, what it shows to the model stays for that turn; and
   * for every call, so it does no I/O. A set that throws has no tools. Of two tools with one name the first counts, those of `Tools` before
   * all sets.
   */
  tools(agent: AgentHost): readonly Tool[]
}

export const ToolSets = extensionPoint<ToolSet>('tool-sets', undefined, { name: 'string', tools: 'function' })

/** Switches tools off for an agent (session `disabled_tools`, profile, configuration). Any refusal hides the tool and fails its calls. */
export interface ToolPolicy {
  readonly name: string
  /** Why the tool is off, as a sentence for the model; undefined: no objection. Called often, so it does no I/O. One that throws objects. */
  refuses(agent: AgentHost, tool: Tool): string | undefined
  /**
   * What the answers for an agent follow from besides name and source of the tool, compared by identity: a section of the configuration, a
   * setting. While that is the same for all policies, and tools and policies are, none is asked again when a turn begins. Without it all are.
   */
  basis?(agent: AgentHost): readonly unknown[]
  /** Names and globs of users that it goes by for this agent: they are told of those that mean no tool. */
  entries?(agent: AgentHost): readonly string[]
}

/** The answer of a policy that fails. */
export const undecided = (policy: string, tool: string): string =>
  `The tool ${tool} is switched off: ${policy} could not say whether it may be used.`

export const ToolPolicies = extensionPoint<ToolPolicy>(
  'tool-policies',
  undefined,
  { name: 'string', refuses: 'function' },
  {
    refuses(_agent, tool) {
      return undecided(this.name, tool.name)
    },
    entries: () => []
  }
)
