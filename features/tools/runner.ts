/** Runs the tool calls of one model response: understand and permit all in order, then execute, then finish each. */
import { setMaxListeners } from 'node:events'
import { firstAbort, silence } from '../../kernel/index.ts'
import { abortText, inTime, limited, withGrace } from './abort.ts'
import { type ParsedCall, parseCall } from './arguments.ts'
import { type Decided, type DecisionPorts, decideCall, failed, failure } from './decision.ts'
import { RepeatSlot, remind } from './repeats.ts'
import { limitResult } from './result-limit.ts'
import { type Job, mayAlter, schedule } from './schedule.ts'
import type { MisunderstoodCall, ToolOutcome, ToolReport, ToolRunInput, ToolRunner } from './service.ts'
import type { ToolResult, ToolUpdate } from './tool.ts'

/** Text of a call whose predecessor in the same response ended the turn. */
const SKIPPED = 'skipped because a previous tool call stopped the turn'

interface RunnerPorts extends DecisionPorts {
  readonly newId: () => string
  /** How long a call may run that says nothing else, ms. */
  readonly callLimitMs: number
}

/** A call after preparation: decided about, or a repetition of an earlier call of the response. */
interface Prepared extends Partial<Decided> {
  readonly parsed: ParsedCall
  readonly original?: number
}

export function createRunner(ports: RunnerPorts): ToolRunner {
  return {
    list: (agent, turn_id) => ports.registry.forModel(agent, turn_id),
    unmatched: agent => ports.registry.unmatched(agent),
    run: input => new Batch(ports, input).run()
  }
}

/** Whether a call behind one of the prepared ones may change what that one sees. */
function changesBehind(prepared: readonly Prepared[], original: number): boolean {
  const of = prepared[original]?.context?.execution.accesses ?? []
  return prepared.slice(original + 1).some(({ context, result }) => context && !result && mayAlter(context.execution.accesses, of))
}

/** The calls of one response. */
class Batch {
  readonly #ports: RunnerPorts
  readonly #input: ToolRunInput
  readonly #counts: ReadonlyMap<string, number>
  readonly #calls: readonly ParsedCall[]
  readonly #results: (ToolResult | undefined)[] = []
  readonly #over = new AbortController()
  /** Each resolves when clients have heard that the call began. */
  readonly #told: Promise<void>[] = []
  /** Index of the first call behind which nothing runs. */
  #stoppedAt = Number.POSITIVE_INFINITY

  constructor(ports: RunnerPorts, input: ToolRunInput) {
    this.#ports = ports
    this.#input = input
    this.#calls = input.calls.map(parseCall)
    setMaxListeners(0, this.#over.signal) // every call listens
    this.#counts = input.agent.get(RepeatSlot).step(input.turn_id, new Set(this.#calls.map(each => each.key)))
  }

  async run(): Promise<readonly ToolOutcome[]> {
    const prepared: Prepared[] = []
    for (const [index, parsed] of this.#calls.entries()) {
      const each = await this.#prepare(parsed, prepared)
      prepared.push(each)
      if (each.result ? each.result.stop_turn : each.context?.execution.ends_response) this.#stop(index)
      const { context, changes, result } = each.original === undefined ? each : prepared[each.original]!
      const execution = context?.execution
      this.#told[index] = this.#report({
        type: 'started',
        call: parsed.call,
        args: changes?.args ?? parsed.args,
        ...(changes && changes.by.length > 0 ? { changed_by: changes.by } : {}),
        ...(result ? { refused: true } : {}),
        ...(execution ? { description: execution.description } : {}),
        ...(execution?.display ? { display: execution.display } : {})
      })
    }
    await schedule(prepared.filter(each => each.original === undefined).map(each => this.#job(each, prepared)))
    this.#over.abort()
    return prepared.map(({ parsed }, index) => ({ call: parsed.call, result: this.#results[index] ?? failure('The call has no result.') }))
  }

  async #prepare(parsed: ParsedCall, before: readonly Prepared[]): Promise<Prepared> {
    const { signal } = this.#input
    const index = before.length
    if (signal.aborted) return { parsed, result: failure(abortText(signal, false)) }
    if (this.#stoppedAt < index) return { parsed, result: failure(SKIPPED) }
    const original = before.findLastIndex(each => each.parsed.key === parsed.key && each.original === undefined)
    if (original >= 0 && !changesBehind(before, original)) return { parsed, original }
    const earlier = before.flatMap(({ context, result }) =>
      context && !result ? [{ tool: context.tool.name, accesses: context.execution.accesses }] : []
    )
    return { parsed, ...(await decideCall(parsed, this.#input, earlier, this.#ports, gone => this.#until(gone))) }
  }

  /** Aborts with the turn and with what `gone` says. */
  #until(gone: AbortSignal | undefined): AbortSignal {
    const { signal: turn } = this.#input
    if (!gone) return turn
    const { signal, end } = firstAbort(turn, gone)
    this.#over.signal.addEventListener('abort', end, { once: true })
    return signal
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
    const { execution, signal: whole } = context!
    if (whole.aborted) return failure(abortText(whole, false))
    if (this.#stoppedAt < index) return failure(SKIPPED)
    const there = this.#ports.registry.callable(this.#input.agent, parsed.call.name) // an approval may have taken its time
    if (typeof there === 'string') return failure(there)
    const { signal, end } = limited(whole, execution.limit_ms ?? this.#ports.callLimitMs)
    let over = false
    try {
      const progress = (update: ToolUpdate) => {
        if (!over) void this.#report({ type: 'progress', call: parsed.call, update })
      }
      const work = (async () => execution.run(progress, signal, this.#told[index]!))()
      const done = await withGrace(work, signal, this.#ports.abandonMs)
      if (!done) return failure(abortText(signal))
      if (!signal.aborted || !done.value.is_error) return done.value
      const { output } = done.value
      const text = abortText(signal)
      return { ...done.value, output: typeof output === 'string' ? `${text}\n\n${output}` : [{ type: 'text', text }, ...output] }
    } catch (error) {
      return signal.aborted ? failure(abortText(signal)) : failed(parsed.call.name, error, this.#ports.registry)
    } finally {
      over = true
      end()
    }
  }

  async #finish({ parsed, context, changes, note: said }: Prepared, result: ToolResult): Promise<ToolResult> {
    let finished = result
    if (context) {
      const { hooks, hookLimitMs, registry } = this.#ports
      for (const tap of [...hooks.after.taps]) {
        try {
          if (tap.type === 'async') throw new Error('taps behind a call answer with a promise or at once, not through a callback')
          const answer = tap.fn(finished, context) as Promise<ToolResult | undefined>
          if (answer !== silence) finished = (await inTime(answer, hookLimitMs, 'what follows a call')) ?? finished
        } catch (error) {
          registry.blameTap(hooks.after, tap, error)
        }
      }
    }
    if (changes && !context && !this.#input.signal.aborted) this.#tellMisunderstood({ call: parsed.call, args: changes.args, result })
    const limited = await limitResult(finished, parsed.call, { ...this.#ports, dir: this.#input.agent.dir })
    const note = [limited.note, changes?.text, said].filter(Boolean).join(' ')
    return remind({ ...limited, ...(note === '' ? {} : { note }) }, this.#counts.get(parsed.key) ?? 1)
  }

  #tellMisunderstood(call: Omit<MisunderstoodCall, 'agent'>): void {
    const { hooks, registry } = this.#ports
    for (const tap of [...hooks.misunderstood.taps]) {
      try {
        tap.fn({ ...call, agent: this.#input.agent })
      } catch (error) {
        registry.blameTap(hooks.misunderstood, tap, error)
      }
    }
  }

  #stop(index: number): void {
    this.#stoppedAt = Math.min(this.#stoppedAt, index)
  }

  async #report(event: ToolReport): Promise<void> {
    try {
      await this.#input.report(event)
    } catch (error) {
      this.#ports.log.error({ err: error, report: event.type }, 'a tool report failed')
    }
  }
}
