/** Runs the tool calls of one model response: understand and permit all in order, then execute, then finish each. */
import type { Logger } from '../../kernel/index.ts'
import type { LlmTool } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { abortText, withGrace } from './abort.ts'
import { type ParsedCall, parseCall, violation } from './arguments.ts'
import type { Registry } from './registry.ts'
import { RepeatSlot, remind } from './repeats.ts'
import { limitResult } from './result-limit.ts'
import { type Job, schedule } from './schedule.ts'
import {
  type ToolAuthority,
  type ToolCallContext,
  type ToolHooks,
  type ToolOutcome,
  ToolRefusal,
  type ToolReport,
  type ToolResult,
  type ToolRunInput,
  type ToolRunner,
  type ToolVerdict
} from './service.ts'

/** Text of a call whose predecessor in the same response ended the turn. */
const SKIPPED = 'skipped because a previous tool call stopped the turn'
/** Text of a call that nobody can permit. */
const NO_AUTHORITY = 'No tool can run: no pack of this server decides which calls are permitted (permissions).'
/** Text of a call about which a guard or the authority said something that is neither yes nor no. */
const UNCLEAR = 'The call was not made: it was neither permitted nor refused.'

export interface RunnerPorts {
  readonly registry: Registry
  readonly hooks: ToolHooks
  /** Asked for every call that no guard refused; undefined: no call runs. */
  readonly authority: () => ToolAuthority | undefined
  readonly log: Logger
  readonly now: () => Date
  readonly newId: () => string
  /** How long an aborted call may take to end, in ms. */
  readonly abandonMs: number
}

/** A call after preparation: ready to run (`context`), settled already (`result`), or a repetition of an earlier call of the response. */
interface Prepared {
  readonly parsed: ParsedCall
  readonly context?: ToolCallContext
  readonly result?: ToolResult
  readonly original?: number
}

export function createRunner(ports: RunnerPorts): ToolRunner {
  return {
    list: (agent: AgentHost): readonly LlmTool[] => ports.registry.forModel(agent),
    run: input => new Batch(ports, input).run()
  }
}

/** The calls of one response. */
class Batch {
  readonly #ports: RunnerPorts
  readonly #input: ToolRunInput
  readonly #counts: ReadonlyMap<string, number>
  readonly #calls: readonly ParsedCall[]
  readonly #results: (ToolResult | undefined)[] = []
  /** Index of the first call that stopped the turn. */
  #stoppedAt = Number.POSITIVE_INFINITY

  constructor(ports: RunnerPorts, input: ToolRunInput) {
    this.#ports = ports
    this.#input = input
    this.#calls = input.calls.map(parseCall)
    this.#counts = input.agent.get(RepeatSlot).step(input.turn_id, new Set(this.#calls.map(each => each.key)))
  }

  async run(): Promise<readonly ToolOutcome[]> {
    const prepared: Prepared[] = []
    for (const [index, parsed] of this.#calls.entries()) {
      const each = await this.#prepare(parsed, index)
      prepared.push(each)
      if (each.result?.stop_turn) this.#stop(index)
      const execution = each.context?.execution
      await this.#report({
        type: 'started',
        call: parsed.call,
        args: parsed.args,
        ...(execution ? { description: execution.description } : {}),
        ...(execution?.display ? { display: execution.display } : {})
      })
    }
    await schedule(prepared.filter(each => each.original === undefined).map(each => this.#job(each, prepared)))
    return prepared.map(({ parsed }, index) => ({ call: parsed.call, result: this.#results[index] ?? failure('The call has no result.') }))
  }

  async #prepare(parsed: ParsedCall, index: number): Promise<Prepared> {
    const { agent, signal } = this.#input
    if (signal.aborted) return { parsed, result: failure(abortText(signal)) }
    if (this.#stoppedAt < index) return { parsed, result: failure(SKIPPED) }
    const original = this.#calls.findIndex(each => each.key === parsed.key)
    if (original < index) return { parsed, original }
    const tool = this.#ports.registry.find(parsed.call.name)
    if (!tool) return { parsed, result: failure(`Tool not found: ${parsed.call.name.slice(0, 200)}`) }
    const refusal = this.#ports.registry.refusal(agent, tool) ?? violation(tool, parsed.value)
    if (refusal !== undefined) return { parsed, result: failure(refusal) }
    const env = {
      agent,
      cwd: agent.session.cwd,
      turn_id: this.#input.turn_id,
      tool_call_id: parsed.call.id,
      now: this.#ports.now
    }
    let context: ToolCallContext | undefined
    try {
      const execution = await this.#wait((async () => tool.prepare(parsed.args, env))())
      if (!execution) return { parsed, result: failure(abortText(signal)) }
      context = { call: parsed.call, args: parsed.args, tool, execution: execution.value, env, signal }
      const verdict = await this.#wait(this.#judge(context))
      if (!verdict || signal.aborted) return { parsed, context, result: failure(abortText(signal)) }
      if (verdict.value.kind === 'run') return { parsed, context }
      const { output, stop_turn } = verdict.value
      return { parsed, context, result: { output, is_error: true, ...(stop_turn ? { stop_turn } : {}) } }
    } catch (error) {
      return { parsed, ...(context ? { context } : {}), result: this.#failed(parsed, error) }
    }
  }

  /** The guards, then the authority. Whatever is not a clear permission refuses the call. */
  async #judge(context: ToolCallContext): Promise<ToolVerdict> {
    const denial = await this.#ports.hooks.before.promise(context)
    if (denial) return denial.kind === 'deny' ? denial : { kind: 'deny', output: UNCLEAR }
    const authority = this.#ports.authority()
    if (!authority) return { kind: 'deny', output: NO_AUTHORITY }
    const verdict: ToolVerdict | undefined = await authority.permit(context) // packs need not be typed
    return verdict?.kind === 'run' || verdict?.kind === 'deny' ? verdict : { kind: 'deny', output: UNCLEAR }
  }

  #job(each: Prepared, all: readonly Prepared[]): Job {
    const index = all.indexOf(each)
    const copies = all.flatMap((other, at) => (other.original === index ? [at] : []))
    return {
      accesses: each.result ? [] : (each.context?.execution.accesses ?? []),
      run: async () => {
        const result = await this.#finish(each, each.result ?? (await this.#execute(each, index)))
        if (result.stop_turn) this.#stop(index)
        for (const at of [index, ...copies]) {
          this.#results[at] = result
          await this.#report({ type: 'finished', call: this.#calls[at]!.call, result })
        }
      }
    }
  }

  async #execute({ parsed, context }: Prepared, index: number): Promise<ToolResult> {
    const { signal } = this.#input
    if (signal.aborted) return failure(abortText(signal))
    if (this.#stoppedAt < index) return failure(SKIPPED)
    let over = false
    try {
      const work = (async () =>
        context!.execution.run(update => {
          if (!over) void this.#report({ type: 'progress', call: parsed.call, update })
        }, signal))()
      const done = await this.#wait(work)
      if (!done) return failure(abortText(signal))
      if (!signal.aborted || !done.value.is_error) return done.value
      const { output } = done.value
      const text = abortText(signal)
      return { ...done.value, output: typeof output === 'string' ? `${text}\n\n${output}` : [{ type: 'text', text }, ...output] }
    } catch (error) {
      return signal.aborted ? failure(abortText(signal)) : this.#failed(parsed, error)
    } finally {
      over = true
    }
  }

  async #finish({ parsed, context }: Prepared, result: ToolResult): Promise<ToolResult> {
    let finished = result
    if (context) {
      try {
        finished = await this.#ports.hooks.after.promise(finished, context)
      } catch (error) {
        this.#ports.log.error({ err: error, tool: parsed.call.name }, 'a hook after a tool call failed')
      }
    }
    const limited = await limitResult(finished, parsed.call, { ...this.#ports, dir: this.#input.agent.dir })
    return remind(limited, this.#counts.get(parsed.key) ?? 1)
  }

  #failed(parsed: ParsedCall, error: unknown): ToolResult {
    if (error instanceof ToolRefusal) return failure(error.message)
    this.#ports.log.error({ err: error, tool: parsed.call.name }, 'a tool call failed unexpectedly')
    return failure(`The tool ${parsed.call.name} failed: ${error instanceof Error ? error.message : String(error)}`)
  }

  #stop(index: number): void {
    this.#stoppedAt = Math.min(this.#stoppedAt, index)
  }

  /** The value, or undefined when the work ignored the abort for too long. */
  #wait<T>(work: Promise<T>): Promise<{ readonly value: T } | undefined> {
    return withGrace(work, this.#input.signal, this.#ports.abandonMs)
  }

  async #report(event: ToolReport): Promise<void> {
    try {
      await this.#input.report(event)
    } catch (error) {
      this.#ports.log.error({ err: error, report: event.type }, 'a tool report failed')
    }
  }
}

function failure(output: string): ToolResult {
  return { output, is_error: true }
}
