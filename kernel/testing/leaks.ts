/** Leak check for tests: what keeps this process alive (timers, watchers, sockets, servers, child processes, worker threads). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'

export type Resources = ReadonlyMap<string, number>

/** Requests that end by themselves. */
const passing = new Set(['FSReqCallback', 'FSReqPromise', 'FileHandle', 'FileHandleCloseReq', 'CloseReq', 'Immediate'])

function count(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) if (!passing.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

/** What is open, by kind and count, once it has stopped changing for some passes of the event loop. Take it before the act. */
export async function openResources(): Promise<Resources> {
  let last = count()
  for (let quiet = 0; quiet < 10; ) {
    await turn()
    const next = count()
    quiet = same(last, next) ? quiet + 1 : 0
    last = next
  }
  return last
}

/** Fails when more is open than `before`. Closing takes some passes of the event loop; what is still there after so many is a leak. */
export async function assertNothingMore(before: Resources, turns = 2_000): Promise<void> {
  const more = () => [...count()].filter(([kind, now]) => now > (before.get(kind) ?? 0)).map(([kind]) => kind)
  await openResources() // what is just being opened counts
  for (let passed = 0; passed < turns && more().length > 0; passed++) await turn()
  const left = more()
  assert.ok(left.length === 0, `something was left open: ${left.join(', ')}`)
}

/**
 * Fails when `act` leaves something open. What is opened by its first run alone and stays (a pool of connections, a client that keeps its own) is
 * none: the act runs again when it left something, up to three times, and each run would leave a leak once more.
 */
export async function assertLeavesNothing(act: () => unknown): Promise<void> {
  for (let runs = 1; ; runs++) {
    const before = await openResources()
    await act()
    try {
      await assertNothingMore(before, runs < 3 ? 200 : undefined)
      return
    } catch (error) {
      if (runs === 3) throw error
    }
  }
}

/** One turn that waits for the thread pool, too. */
async function turn(): Promise<void> {
  await readFile(new URL(import.meta.url))
  await new Promise(resolve => setImmediate(resolve))
}

function same(a: Resources, b: Resources): boolean {
  return a.size === b.size && [...a].every(([kind, value]) => b.get(kind) === value)
}
