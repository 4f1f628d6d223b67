/** Long work in fair shares of the event loop. */
import { breathe } from '../../kernel/index.ts'

/** Runs work that yields at every place where it may be interrupted. */
export async function inSlices<T>(work: Generator<void, T, void>): Promise<T> {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    const others = breathe()
    if (others) await others
  }
}
