/** How it is decided whether a call runs: understood, guarded, permitted; what somebody must consent to is asked last. */
import { AppError, type Logger, PackAway, silence } from '../../kernel/index.ts'
import { abortText, inTime, withGrace } from './abort.ts'
import { type ParsedCall, violation } from './arguments.ts'
import { Changes } from './changes.ts'
import type { Registry } from './registry.ts'
import type { ToolAuthority, ToolCallContext, ToolDecision, ToolHooks, ToolRewrite, ToolRunInput } from './service.ts'
import { type EarlierCall, type Tool, type ToolEnv, ToolRefusal, type ToolResult } from './tool.ts'

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
  /** How long a tool may take to understand a call, and each of those that decide about it, ms. Who asks people takes their time. */
  readonly hookLimitMs: number
}

/** A call that runs has a context and no result; one that does not run has a result, and a context if it was understood. */
export interface Decided {
  readonly changes: Changes
  readonly context?: ToolCallContext
  readonly result?: ToolResult
  /** Told to the model with the result, whatever it is. */
  readonly note?: string
}

/**
 * Understands the call and decides about it, again and again while its arguments are rewritten. `during`: the signal of a call that also ends
 * with the pack of its tool. Never rejects.
 */
export async function decideCall(
  parsed: ParsedCall,
  input: ToolRunInput,
  earlier: readonly EarlierCall[],
  ports: DecisionPorts,
  during: (gone: AbortSignal | undefined) => AbortSignal
): Promise<Decided> {
  const { agent, turn_id } = input
  const { call } = parsed
  const changes = new Changes(parsed.args)
  const tool = ports.registry.callable(agent, call.name)
  if (typeof tool === 'string') return { changes, result: failure(tool) }
  const signal = during(ports.registry.leaving(call.name))
  const wrong = violation(tool, parsed.value, parsed.unreadable)
  if (wrong !== undefined) return { changes, result: failure(wrong) }
  const env = { agent, cwd: agent.session.cwd, turn_id, tool_call_id: call.id, now: ports.now, earlier }
  for (;;) {
    const decided = await decideOnce({ parsed, tool, env, changes, signal }, ports)
    if (decided) return decided
    const wrong = violation(tool, changes.args)
    if (wrong !== undefined) return { changes, result: failure(wrong) }
  }
}

interface Attempt {
  readonly parsed: ParsedCall
  readonly tool: Tool
  readonly env: ToolEnv
  readonly changes: Changes
  readonly signal: AbortSignal
}

/** Undefined when the arguments have changed. */
async function decideOnce({ parsed: { call }, tool, env, changes, signal }: Attempt, ports: DecisionPorts): Promise<Decided | undefined> {
  const wait = <T>(work: Promise<T>) => withGrace(work, signal, ports.abandonMs)
  const { args } = changes
  let context: ToolCallContext | undefined
  try {
    const execution = await wait(inTime((async () => tool.prepare(args, env))(), ports.hookLimitMs, `the preparation of ${call.name}`))
    if (!execution) return { changes, result: failure(abortText(signal, false)) }
    context = { call, args, tool, execution: execution.value, env, signal }
    const decision = await wait(judge(context, changes, ports))
    if (!decision || signal.aborted) return { changes, context, result: failure(abortText(signal, false)) }
    if (decision.value === 'changed') return undefined
    if (decision.value.kind === 'run') {
      const { note } = decision.value
      return { ...(await reviewed(context, changes, ports, wait)), ...(note === undefined ? {} : { note }) }
    }
    const { kind: _kind, ...refusal } = decision.value
    return { changes, context, result: { ...refusal, is_error: true } }
  } catch (error) {
    const result = signal.aborted ? failure(abortText(signal, false)) : failed(call.name, error, ports.registry)
    return { changes, ...(context ? { context } : {}), result }
  }
}

/** A call that may run, unless whoever reviews what it is about settles it. */
async function reviewed(
  context: ToolCallContext,
  changes: Changes,
  ports: DecisionPorts,
  wait: <T>(work: Promise<T>) => Promise<{ readonly value: T } | undefined>
): Promise<Decided> {
  const { execution, signal } = context
  if (!execution.review) return { changes, context }
  const review = async () => {
    await checked(context, ports)
    return await execution.review?.(signal)
  }
  const settled = await wait(review())
  if (!settled || signal.aborted) return { changes, context, result: failure(abortText(signal, false)) }
  return settled.value ? { changes, context, result: settled.value } : { changes, context }
}

/** The tool's own look at the world, before somebody is asked. */
async function checked({ tool, execution, signal }: ToolCallContext, { hookLimitMs }: DecisionPorts): Promise<void> {
  await inTime(execution.check?.(signal), hookLimitMs, `the check of ${tool.name}`)
  signal.throwIfAborted()
}

/** The guards, then the authority, and last whoever it asks. Whatever is not a clear permission refuses the call. */
async function judge(context: ToolCallContext, changes: Changes, ports: DecisionPorts): Promise<ToolDecision | 'changed'> {
  const objection = await askGuards(context, changes, ports)
  if (objection) return objection
  context.signal.throwIfAborted()
  const authority = ports.authority()
  if (!authority) return { kind: 'deny', output: NO_AUTHORITY }
  const clear = (answer: ToolDecision | ToolRewrite | undefined) => {
    if (answer?.kind === 'rewrite' && changes.add(authority, 'the permission decision', answer)) return 'changed'
    return answer?.kind === 'run' || answer?.kind === 'deny' ? answer : UNCLEAR
  }
  const verdict = await inTime(authority.permit(context), ports.hookLimitMs, 'the permission decision').catch(undecided)
  if (verdict?.kind !== 'ask') return clear(verdict)
  await checked(context, ports)
  return clear(await verdict.ask().catch(undecided))
}

/** One guard after the other, until one objects. Packs need not be typed: what is no answer of a guard refuses the call. */
async function askGuards(
  context: ToolCallContext,
  changes: Changes,
  { hooks, hookLimitMs, registry }: DecisionPorts
): Promise<ToolDecision | 'changed' | undefined> {
  for (const tap of [...hooks.before.taps]) {
    if (tap.type === 'async') throw new Error(`the tap ${tap.name} must answer with a promise or at once, not through a callback`)
    const asked = tap.fn(context) as ReturnType<typeof hooks.before.promise>
    if (asked === silence) continue
    const answer = await inTime(asked, hookLimitMs, `the guard ${tap.name}`).catch((error: unknown) => {
      if (!AppError.is(error)) registry.blameTap(hooks.before, tap, error)
      return undecided(error)
    })
    if (answer === undefined) continue
    if (answer.kind === 'deny') return answer
    if (answer.kind !== 'rewrite') return UNCLEAR
    if (changes.add(tap.fn, tap.name, answer)) return 'changed'
  }
  return undefined
}

/** Who decides about a call failed: the pack of the tool has no part in it. */
class Undecided extends Error {}

function undecided(error: unknown): never {
  throw AppError.is(error) || !(error instanceof Error) || error instanceof ToolRefusal
    ? error
    : new Undecided(error.message, { cause: error })
}

/** The result of a call that threw. */
export function failed(name: string, error: unknown, registry: Registry): ToolResult {
  if (error instanceof ToolRefusal) return failure(error.message)
  if (AppError.is(error) && error.code === PackAway.code) return failure(`The call was not made: ${error.message} in a moment.`)
  if (!(error instanceof Undecided)) registry.blame(name, error)
  return failure(`The tool ${name} failed: ${error instanceof Error ? error.message : String(error)}`)
}

export function failure(output: string): ToolResult {
  return { output, is_error: true }
}
