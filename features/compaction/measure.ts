/** When a context is too large. Pure. */
export interface Limits {
  /** Share of the window; above it the context is made smaller. */
  readonly ratio: number
  /** Tokens that must be left for what comes; as many as the window or more: ignored. */
  readonly reserved: number
}

/** Whether `used` tokens are too many for the window. */
export function isFull(used: number, window: number, { ratio, reserved }: Limits): boolean {
  return used >= ratio * window || (reserved < window && used + reserved >= window)
}

/** Above this share of the window a step waits; below, where the configuration wants it, steps go on beside a compaction. */
const latestRatio = 0.85

/** Whether no step goes on any more before it is made smaller. */
export const isPressing = (used: number, window: number, { ratio, reserved }: Limits): boolean =>
  isFull(used, window, { ratio: Math.max(ratio, latestRatio), reserved })

/** A context must have grown by this share of the window since the last compaction; where that is too much, up to the second one. */
const growth = 0.2
const nearlyAll = 0.95

/**
 * Size from which on another compaction is worth its costs. `floor`: size right after the last one, with what the provider counts beside
 * messages; undefined: there was none. In a small window the reserve alone would ask for one before every step.
 */
export function worthwhile(floor: number | undefined, window: number): number {
  return floor === undefined ? 0 : Math.max(floor + 1, Math.min(floor + growth * window, nearlyAll * window))
}

/** What the provider really takes, after it refused so many tokens. */
export const observedWindow = (refused: number): number => Math.floor(refused * 0.85)
