/** A pack for measuring: emits event streams on demand and reports the event loop's delay. Loaded like any third-party pack. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defineEvent, definePack, defineRoute, Type } from '../../kernel/index.ts'

const payload = Type.Object({ turnId: Type.Integer(), delta: Type.String() })
const delta = defineEvent({
  type: 'bench.delta',
  scope: 'session',
  durable: false,
  payload
})
const fact = defineEvent({ type: 'bench.fact', scope: 'session', durable: true, payload })

const emitRoute = defineRoute({
  method: 'POST',
  path: '/api/v1/bench/emit',
  summary: 'Emit events of one session',
  body: Type.Object({ session_id: Type.String(), count: Type.Integer(), durable: Type.Boolean({ default: false }), text: Type.String() }),
  data: Type.Object({ elapsed_ms: Type.Number() })
})
const loopRoute = defineRoute({
  method: 'GET',
  path: '/api/v1/bench/loop',
  summary: 'Event loop delay since the last call, ms',
  data: Type.Object({ max_ms: Type.Number(), p99_ms: Type.Number() })
})

const memoryRoute = defineRoute({
  method: 'GET',
  path: '/api/v1/bench/memory',
  summary: 'Memory in use after a garbage collection, MB',
  data: Type.Object({ used_mb: Type.Number() })
})

function collect(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

export default definePack({
  name: 'bench',
  setup(ctx) {
    const emitDelta = ctx.event(delta)
    const emitFact = ctx.event(fact)
    const loop = monitorEventLoopDelay({ resolution: 1 })
    loop.enable()
    ctx.own(() => loop.disable())
    ctx.route(memoryRoute, () => {
      collect()
      const { heapUsed, external } = process.memoryUsage()
      return { used_mb: (heapUsed + external) / 1024 / 1024 }
    })
    ctx.route(emitRoute, async ({ body }) => {
      const began = performance.now()
      const emit = body.durable ? emitFact : emitDelta
      for (let n = 0; n < body.count; n++) {
        emit({ turnId: 0, delta: body.text }, body.session_id)
        if (n % 10 === 9) await turn() // as a network stream would hand them over
      }
      await ctx.streams.flushed(body.session_id)
      return { elapsed_ms: performance.now() - began }
    })
    ctx.route(loopRoute, () => {
      // The monitor's own 1 ms period is part of what it reports.
      const seen = { max_ms: Math.max(0, loop.max / 1e6 - 1), p99_ms: Math.max(0, loop.percentile(99) / 1e6 - 1) }
      loop.reset()
      return seen
    })
  }
})
