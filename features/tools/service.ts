/** Tools as values, the registry, the hooks around a call, and the port the agent uses. */

import type { TObject } from '@sinclair/typebox'
import { AsyncSeriesBailHook, AsyncSeriesWaterfallHook } from 'tapable'
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { LlmContent, LlmTool, LlmToolCall } from '../llm/index.ts'
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

export interface ToolResult {
  readonly output: string | readonly LlmContent[]
  readonly is_error?: boolean
  /** Appended for the model only. */
  readonly note?: string
  /** Ends the turn after this batch. */
  readonly stop_turn?: boolean
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
}

/** One of the things of a call that permission rules judge: a command of a line, the file that is touched, the pattern searched for. */
export interface RulePart {
  /** Narrow reading, for rules that allow: the argument pattern stands for all of this part and for nothing else. */
  covers(pattern: string): boolean
  /** Wide reading, for rules that deny or ask: the argument pattern means this part, or something in it. */
  names(pattern: string): boolean
}

/** A call that was understood: what it will do, before anything happens. */
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
  run(progress: (update: ToolUpdate) => void, signal: AbortSignal): Promise<ToolResult>
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

export const Tools = extensionPoint<Tool>('tools')

/** Switches tools off for an agent (session `disabled_tools`, profile, configuration). Any refusal hides the tool and fails its calls. */
export interface ToolPolicy {
  readonly name: string
  /** Why the tool is off, as a sentence for the model; undefined: no objection. Called often, so it does no I/O. */
  refuses(agent: AgentHost, tool: Tool): string | undefined
}

export const ToolPolicies = extensionPoint<ToolPolicy>('tool-policies')

/** A prepared call on its way to execution. */
export interface ToolCallContext {
  readonly call: LlmToolCall
  readonly args: Readonly<Record<string, unknown>>
  readonly tool: Tool
  readonly execution: ToolExecution
  readonly env: ToolEnv
  /** The turn's abort signal. */
  readonly signal: AbortSignal
}

/** Settles a call with an error result, before it runs. */
export interface ToolDenial {
  readonly kind: 'deny'
  /** Text for the model. */
  readonly output: string
  /** Ends the turn after this batch. */
  readonly stop_turn?: boolean
}

export interface ToolHooks {
  /** Bail, in stages (guards -100, dedupe 0): a guard that answers refuses the call, undefined means no objection. No guard can permit. */
  readonly before: AsyncSeriesBailHook<[ToolCallContext], ToolDenial | undefined>
  /** Waterfall on the result of a call that ran or was denied. */
  readonly after: AsyncSeriesWaterfallHook<[ToolResult, ToolCallContext]>
}
export const ToolHooks = serviceToken<ToolHooks>('tool-hooks')

/** The hooks of one activation of the pack. */
export function createToolHooks(): ToolHooks {
  return { before: new AsyncSeriesBailHook(['context']), after: new AsyncSeriesWaterfallHook(['result', 'context']) }
}

/** What the authority says of a call. */
export type ToolVerdict = { readonly kind: 'run' } | ToolDenial

/**
 * Decides whether a call may run, after every guard had no objection. There is one authority or none; a call runs only when the
 * authority answered `run`. Without one, with one that throws or answers anything else, it is refused.
 */
export interface ToolAuthority {
  permit(context: ToolCallContext): Promise<ToolVerdict>
  /** What a search may show: whether a file (absolute path, links resolved) is free of rules that deny reading it. */
  readable(env: Pick<ToolEnv, 'agent' | 'cwd'>): Promise<(path: string) => boolean>
}
export const ToolAuthority = serviceToken<ToolAuthority>('tool-authority')

/** How the agent sees tools; results come in call order. Provided by the tools pack, used by the turn. */
export interface ToolRunner {
  /** Tool list for the model, filtered by policy. */
  list(agent: AgentHost): readonly LlmTool[]
  /**
   * Prepares all calls in order (validation, permission), then executes. Never rejects. Events go through `report`:
   * `started` after the decision (also for denied calls), `progress`, and `finished` in completion order.
   */
  run(input: ToolRunInput): Promise<readonly ToolOutcome[]>
}

export interface ToolRunInput {
  readonly agent: AgentHost
  readonly turn_id: number
  readonly calls: readonly LlmToolCall[]
  readonly signal: AbortSignal
  readonly report: (event: ToolReport) => void | Promise<void>
}

export type ToolReport =
  | {
      readonly type: 'started'
      readonly call: LlmToolCall
      readonly args: Readonly<Record<string, unknown>>
      readonly description?: string
      readonly display?: ToolDisplay
    }
  | { readonly type: 'progress'; readonly call: LlmToolCall; readonly update: ToolUpdate }
  | { readonly type: 'finished'; readonly call: LlmToolCall; readonly result: ToolResult }

export interface ToolOutcome {
  readonly call: LlmToolCall
  readonly result: ToolResult
}

export const ToolRunner = serviceToken<ToolRunner>('tool-runner')
