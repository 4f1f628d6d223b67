/** How it is decided whether a call runs: understood, guarded, permitted; what somebody must consent to is asked last. */
import type { Logger } from '../../kernel/index.ts'
import { abortText, withGrace } from './abort.ts'
import { type ParsedCall, violation } from './arguments.ts'
import type { Registry } from './registry.ts'
import type { ToolAuthority, ToolCallContext, ToolDecision, ToolHooks, ToolRunInput } from './service.ts'
import { type EarlierCall, ToolRefusal, type ToolResult } from './tool.ts'

/** Text of a call that nobody can permit. */
const NO_AUTHORITY = 'No tool can run: no pack of this server decides which calls are permitted (permissions).'
/** Text of a call about which a guard or the authority said something that is neither yes nor no. */
const UNCLEAR: ToolDecision = { kind: 'deny', output: 'The call was not made: it was neither permitted nor refused.' }

export interface DecisionPorts {
  readonly registry: Registry
  readonly hooks: ToolHooks
  /** Asked for every call that no guard refused; undefined: no call runs. */
  readonly authority: () => ToolAuthority | undefined
  readonly log: Logger
  readonly now: () => Date
  /** How long an aborted call may take to end, in ms. */
  readonly abandonMs: number
}

/** A call that runs has a context and no result; one that does not run has a result, and a context if it was understood. */
export interface Decided {
  readonly context?: ToolCallContext
  readonly result?: ToolResult
}

/** Understands the call and decides about it. Never rejects. `earlier`: calls of the same response that will run. */
export async function decideCall(
  parsed: ParsedCall,
  { agent, turn_id, signal }: ToolRunInput,
  earlier: readonly EarlierCall[],
  ports: DecisionPorts
): Promise<Decided> {
  const { call, args } = parsed
  const tool = ports.registry.find(call.name)
  if (!tool) return { result: failure(`Tool not found: ${call.name.slice(0, 200)}`) }
  const refusal = ports.registry.refusal(agent, tool) ?? violation(tool, parsed.value)
  if (refusal !== undefined) return { result: failure(refusal) }
  const env = { agent, cwd: agent.session.cwd, turn_id, tool_call_id: call.id, now: ports.now, earlier }
  const wait = <T>(work: Promise<T>) => withGrace(work, signal, ports.abandonMs)
  let context: ToolCallContext | undefined
  try {
    const execution = await wait((async () => tool.prepare(args, env))())
    if (!execution) return { result: failure(abortText(signal)) }
    context = { call, args, tool, execution: execution.value, env, signal }
    const decision = await wait(judge(context, ports))
    if (!decision || signal.aborted) return { context, result: failure(abortText(signal)) }
    if (decision.value.kind === 'run') return { context }
    const { output, stop_turn } = decision.value
    return { context, result: { output, is_error: true, ...(stop_turn ? { stop_turn } : {}) } }
  } catch (error) {
    return { ...(context ? { context } : {}), result: signal.aborted ? failure(abortText(signal)) : failed(call.name, error, ports.log) }
  }
}

/** The guards, then the authority, and last whoever it asks. Whatever is not a clear permission refuses the call. */
async function judge(context: ToolCallContext, ports: DecisionPorts): Promise<ToolDecision> {
  const denial = await ports.hooks.before.promise(context)
  if (denial) return denial.kind === 'deny' ? denial : UNCLEAR // no guard can permit
  context.signal.throwIfAborted()
  const authority = ports.authority()
  if (!authority) return { kind: 'deny', output: NO_AUTHORITY }
  const verdict = await authority.permit(context)
  if (verdict?.kind !== 'ask') return clear(verdict)
  await context.execution.check?.(context.signal)
  context.signal.throwIfAborted()
  return clear(await verdict.ask())
}

/** Packs need not be typed: what they answer is looked at. */
function clear(decision: ToolDecision | undefined): ToolDecision {
  return decision?.kind === 'run' || decision?.kind === 'deny' ? decision : UNCLEAR
}

/** The result of a call that threw. */
export function failed(name: string, error: unknown, log: Logger): ToolResult {
  if (error instanceof ToolRefusal) return failure(error.message)
  log.error({ err: error, tool: name }, 'a tool call failed unexpectedly')
  return failure(`The tool ${name} failed: ${error instanceof Error ? error.message : String(error)}`)
}

export function failure(output: string): ToolResult {
  return { output, is_error: true }
}
