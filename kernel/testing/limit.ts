/** Time limits of waits in tests: what waits for ever tells nothing. */

export interface Limit {
  /** What was waited for has come. */
  end(): void
}

/** Calls `late` once `ms` have passed (default 60,000), with an error that says what came instead. Keeps no process alive. */
export function within(ms = 60_000, what: string, came: readonly { readonly type: string }[], late: (error: Error) => void): Limit {
  const timer = setTimeout(() => {
    const last = came.slice(-10).map(({ type }) => type)
    late(new Error(`no ${what} came within ${ms} ms; what came last: ${last.join(', ') || 'nothing'}`))
  }, ms).unref()
  return { end: () => clearTimeout(timer) }
}
