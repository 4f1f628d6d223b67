/** A compaction beside the steps of a turn: one of them waits no longer than it takes to put the summary in place. */
import { type CompactionInput, type CompactorPorts, cancel, replace, type SummaryOf, summaryOf, type Taken, take } from './compactor.ts'
import { begun } from './records.ts'

type Input = Pick<CompactionInput, 'agent' | 'history' | 'window'>

export class Beside {
  readonly #ports: CompactorPorts
  readonly #input: Input
  readonly #taken: Taken
  readonly #controller = new AbortController()
  /** Resolves when the summary is there, or will not come. */
  readonly summarised: Promise<void>
  #summary: Extract<SummaryOf, { end?: undefined }> | undefined
  #over: Promise<void> | undefined

  /** Its begin goes to the disk while steps go on. */
  static async start(ports: CompactorPorts, input: Input): Promise<Beside> {
    const taken = await take(input)
    return new Beside(ports, input, taken, input.history.append(begun.of({ trigger: 'auto' })))
  }

  private constructor(ports: CompactorPorts, input: Input, taken: Taken, began: Promise<void>) {
    this.#ports = ports
    this.#input = input
    this.#taken = taken
    this.summarised = this.#summarise(began)
  }

  /** The summary can be put in place. */
  get isReady(): boolean {
    return this.#summary !== undefined
  }

  /** No call may be without its result. False: the context is as it was. */
  async putInPlace(): Promise<boolean> {
    const summary = this.#summary
    this.#summary = undefined
    if (!summary) return false
    try {
      return (await replace(this.#ports, this.#input, this.#taken, summary)) === 'done'
    } catch (err) {
      this.#ports.log.error({ err, session_id: this.#input.agent.host.session.id }, 'a summary could not be put in place')
      await cancel(this.#ports, this.#input, undefined, summary.spent)
      return false
    }
  }

  /** Resolves when its end is on record. */
  end(): Promise<void> {
    this.#over ??= this.#end()
    return this.#over
  }

  async #end(): Promise<void> {
    this.#controller.abort()
    await this.summarised
    const summary = this.#summary
    this.#summary = undefined
    if (summary) await cancel(this.#ports, this.#input, undefined, summary.spent)
  }

  /** What fails is no failure of the turn: the context is not full yet. */
  async #summarise(began: Promise<void>): Promise<void> {
    const { log } = this.#ports
    const { agent } = this.#input
    const { signal } = this.#controller
    try {
      await began
    } catch (err) {
      log.error({ err, session_id: agent.host.session.id }, 'the begin of a compaction could not be recorded')
      return
    }
    try {
      const summary = await summaryOf(this.#ports, this.#taken, undefined, signal)
      if (summary.end === undefined && !signal.aborted) this.#summary = summary
      else await cancel(this.#ports, this.#input, undefined, summary.spent)
      if (typeof summary.end === 'object')
        log.warn({ err: summary.end, session_id: agent.host.session.id }, 'a compaction beside a turn failed')
    } catch (err) {
      log.error({ err, session_id: agent.host.session.id }, 'a compaction failed unexpectedly')
      await cancel(this.#ports, this.#input, undefined)
    }
  }
}
