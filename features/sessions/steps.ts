/** Steps of this and other packs at one moment in the life of a loaded session. */
import type { Logger } from '../../kernel/index.ts'
import type { LiveSession } from './live.ts'

type Step = (session: LiveSession) => unknown

export class Steps {
  readonly #log: Logger
  readonly #moment: string
  readonly #steps = new Set<{ readonly step: Step }>()

  /** `moment`: what the session goes through, as the log says it ("loading"). */
  constructor(log: Logger, moment: string) {
    this.#log = log
    this.#moment = moment
  }

  /** Answers how to take it out again. */
  add(step: Step): () => void {
    const entry = { step }
    this.#steps.add(entry)
    return () => void this.#steps.delete(entry)
  }

  /** One after the other, in the order in which they came. One that fails is logged, and keeps no session from opening or closing. */
  async run(session: LiveSession): Promise<void> {
    for (const { step } of [...this.#steps]) {
      try {
        await step(session)
      } catch (err) {
        this.#log.error({ err, session_id: session.id }, `a step of ${this.#moment} a session failed`)
      }
    }
  }
}
