/** Hooks that decide: prompts and tool calls that are blocked or changed, turns that go on. Tapped only while there are rules for them. */
import { defineSlot, headOf, type PackContext, type Undo } from '../../kernel/index.ts'
import type { TurnHooks } from '../agent/index.ts'
import type { Origin } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { MisunderstoodCall, ToolHooks } from '../tools/index.ts'
import type { HookEvent } from './contract.ts'
import type { HookRules } from './rules.ts'
import type { HookRunner } from './runner.ts'

/** Number of the last turn that a Stop hook kept going: it does so once per turn. */
const StopSlot = defineSlot('stop-hook', (_agent: AgentHost) => ({ turn_id: -1 }))
/** Arguments of calls, by id, for hooks that hear of the question whether one may run; for a turn at most. */
export const AskedSlot = defineSlot('hook-asked', (_agent: AgentHost) => new Map<string, Readonly<Record<string, unknown>>>())
/** Behind every guard. */
const LAST = 1000
/** Before the guards that look at what a call would do. */
const STAGE = -150
/** Characters of a tool's output that hooks get. */
const OUTPUT_CHARS = 2000

/** What is text of a message, or of a result. */
export const textOf = (parts: readonly { readonly type: string }[]): string =>
  parts.flatMap(part => ('text' in part && part.type === 'text' ? [String(part.text)] : [])).join('\n')

export interface DecidingPorts {
  readonly rules: HookRules
  readonly runner: HookRunner
  readonly turns: TurnHooks
  readonly tools: ToolHooks
}

/** What a user typed, or what stands for it: nobody else's prompts are held up. */
const fromUser = (origin: Origin): boolean => origin.kind === 'user' || origin.trigger === 'user-slash'

/** Keeps the taps as the rules are; call it again when these changed. */
export function keepTapped(ctx: PackContext, { rules, runner, turns, tools }: DecidingPorts): () => void {
  ctx.slot(StopSlot)
  ctx.slot(AskedSlot)
  const taps = new Map<string, Undo>()
  const keep = (name: string, events: readonly HookEvent[], tap: () => Undo) => {
    const wanted = rules.has(...events)
    if (taps.has(name) === wanted) return
    if (wanted) taps.set(name, tap())
    else taps.get(name)?.()
    if (!wanted) taps.delete(name)
  }
  const tellUsed = ({ call, args, result: { output, is_error }, agent: { session } }: MisunderstoodCall) => {
    const tool_output = headOf(typeof output === 'string' ? output : textOf(output), OUTPUT_CHARS)
    const failed = is_error ? { error: { message: tool_output } } : {}
    const fields = { tool_name: call.name, tool_input: args, tool_call_id: call.id, tool_output, ...failed }
    runner.tell({ event: is_error ? 'PostToolUseFailure' : 'PostToolUse', session, subject: call.name, fields })
  }
  return () => {
    keep('prompt', ['UserPromptSubmit'], () =>
      ctx.tap(turns.beforePrompt, async ({ agent: { session }, content, origin, steered, signal, add }) => {
        if (!fromUser(origin)) return undefined
        const prompt = textOf(content)
        const fields = { prompt, is_steer: steered }
        const { blocked, messages } = await runner.ask({ event: 'UserPromptSubmit', session, subject: prompt, fields, signal })
        if (blocked.length > 0) return { event: 'UserPromptSubmit', reason: blocked.join('\n') }
        for (const message of messages) add('UserPromptSubmit', message)
        return undefined
      })
    )
    keep('before', ['PreToolUse'], () =>
      ctx.tap(
        tools.before,
        async ({ call, args, env, signal }) => {
          const { session } = env.agent
          const fields = { tool_name: call.name, tool_input: args, tool_call_id: call.id }
          const { blocked, input } = await runner.ask({ event: 'PreToolUse', session, subject: call.name, fields, signal })
          if (blocked.length > 0) return { kind: 'deny', output: `A hook of the user denied the call: ${blocked.join('\n')}` } as const
          return input ? ({ kind: 'rewrite', args: input, reason: 'A hook of the user asked for that.' } as const) : undefined
        },
        { stage: STAGE }
      )
    )
    keep('asked', ['PermissionRequest', 'PermissionResult'], () => {
      const undo = [
        ctx.tap(
          tools.before,
          async ({ call, args, env }) => {
            env.agent.get(AskedSlot).set(call.id, args)
            return undefined
          },
          { stage: LAST }
        ),
        ctx.tap(tools.after, (result, { call, env }) => {
          env.agent.peek(AskedSlot)?.delete(call.id)
          return result
        })
      ]
      return () => {
        for (const each of undo) each()
      }
    })
    keep('after', ['PostToolUse', 'PostToolUseFailure'], () =>
      ctx.tap(tools.after, (result, { call, args, env }) => {
        tellUsed({ call, args, result, agent: env.agent })
        return result
      })
    )
    keep('misunderstood', ['PostToolUseFailure'], () => ctx.tap(tools.misunderstood, tellUsed))
    keep('stop', ['Stop'], () =>
      ctx.tap(turns.shouldContinue, async ({ agent, turn_id, signal }) => {
        const last = agent.get(StopSlot)
        if (agent.record.type === 'sub' || last.turn_id === turn_id) return undefined
        const { blocked } = await runner.ask({ event: 'Stop', session: agent.session, fields: { stop_hook_active: false }, signal })
        if (blocked.length === 0) return undefined
        last.turn_id = turn_id
        return { text: blocked.join('\n'), origin: { kind: 'hook_result', event: 'Stop' } }
      })
    )
  }
}
