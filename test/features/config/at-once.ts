/** Runs work that could be interrupted without a break. */
export function atOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}
