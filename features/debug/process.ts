/** What the process itself can tell: the event loop's delay, memory, open resources. */
import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

const resolutionMs = 10

/** Measures how late timers are, until it is disabled. */
export function measureDelay(): IntervalHistogram {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  return delay
}

/** The histogram holds nanoseconds between two runs of its timer. Without a measurement everything is 0. */
export function loopFacts(delay: IntervalHistogram) {
  const late = (nanoseconds: number) =>
    delay.count === 0 || !Number.isFinite(nanoseconds) ? 0 : Math.round(Math.max(0, nanoseconds / 1e6 - resolutionMs) * 1000) / 1000
  return {
    delay_ms: { mean: late(delay.mean), p50: late(delay.percentile(50)), p99: late(delay.percentile(99)), max: late(delay.max) },
    utilization: Math.min(1, Math.max(0, performance.eventLoopUtilization().utilization))
  }
}

export function memoryFacts() {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage()
  const heap = getHeapStatistics()
  return {
    memory: {
      rss_bytes: rss,
      heap_total_bytes: heapTotal,
      heap_used_bytes: heapUsed,
      external_bytes: external,
      array_buffers_bytes: arrayBuffers
    },
    heap: {
      limit_bytes: heap.heap_size_limit,
      malloced_bytes: heap.malloced_memory,
      contexts: heap.number_of_native_contexts,
      detached_contexts: heap.number_of_detached_contexts
    }
  }
}

export function resourceCounts(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
