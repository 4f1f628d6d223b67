/** When the agents of a swarm start: a few at once, then one after the other, and slower when the provider limits the rate of requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { longestMs } from '../../kernel/index.ts'

export interface Pace {
  /** So many start at once. */
  readonly first: number
  /** Then one each so many ms. */
  readonly spacing_ms: number
  /** At work at a time; undefined: no limit. */
  readonly max?: number
  /** After a rate limit: between two starts, and before the first retry of an agent, which doubles with each; ms. */
  readonly limited_ms: number
  /** The capacity does not shrink again for so long, and grows by one after so long without a limit; ms. */
  readonly shrink_ms: number
  readonly grow_ms: number
}

export const usualPace: Pace = { first: 5, spacing_ms: 700, limited_ms: 3000, shrink_ms: 2000, grow_ms: 180_000 }

/** One agent of the swarm. `limited`: the provider refused it for the rate of requests; it is let to work again later. */
export interface Member {
  work(attempt: number, mayWait: () => boolean): Promise<'over' | 'limited'>
}

/** Resolves when every member is over, or the signal aborts and those at work have ended. */
export async function runSwarm(members: readonly Member[], pace: Pace, signal: AbortSignal): Promise<void> {
  const now = () => performance.now() // which nobody sets back
  const waiting = members.map(member => ({ member, attempt: 0, ready: 0 }))
  const working = new Set<Promise<void>>()
  let started = 0
  let lastStart = 0
  let capacity = pace.max ?? Number.POSITIVE_INFINITY
  let limitedAt: number | undefined
  const left = () => waiting.length + working.size

  const begin = (place: (typeof waiting)[number]) => {
    started++
    lastStart = now()
    // The last one has nobody to give way to: a limit is its failure.
    const job = place.member
      .work(place.attempt, () => left() > 1)
      .then(end => {
        working.delete(job)
        if (end === 'over') return
        const at = now()
        if (limitedAt === undefined || at - limitedAt >= pace.shrink_ms)
          capacity = Math.max(1, Math.min(capacity, limitedAt === undefined ? started : capacity) - 1)
        limitedAt = at
        waiting.push({ ...place, attempt: place.attempt + 1, ready: at + pace.limited_ms * 2 ** Math.min(place.attempt, 10) })
      })
    working.add(job)
  }

  /** How long until the next one may start; undefined: when one has ended. */
  const wait = (): number | undefined => {
    const next = waiting.toSorted((a, b) => a.ready - b.ready)[0]
    if (!next || working.size >= capacity) return undefined
    const spacing = limitedAt !== undefined ? pace.limited_ms : started < pace.first ? 0 : pace.spacing_ms
    return Math.max(next.ready, lastStart + spacing) - now()
  }

  while (!signal.aborted && left() > 0) {
    if (limitedAt !== undefined && now() - limitedAt >= pace.grow_ms) {
      capacity++
      limitedAt = now()
    }
    const ms = wait()
    if (ms !== undefined && ms <= 0) {
      waiting.sort((a, b) => a.ready - b.ready)
      const place = waiting.shift()
      if (place) begin(place)
      continue
    }
    const pause = ms === undefined ? [] : [sleep(Math.min(ms, longestMs), undefined, { signal, ref: false }).catch(() => undefined)] // an abort ends the pause
    await Promise.race([...working, ...pause])
  }
  await Promise.all(working)
}
