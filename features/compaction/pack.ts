/** Wires compaction: the route, the hooks of turns, events from records, what a crash left open. */
import { AppError, definePack, defineSlot, type EventTarget, Type } from '../../kernel/index.ts'
import { AgentRepairs, Agents, TurnHooks } from '../agent/index.ts'
import { Config, loopControlSection } from '../config/index.ts'
import { contextCompacted, Histories, HistoryStates, RecordEvents, recordTypes } from '../history/index.ts'
import { Llm } from '../llm/index.ts'
import { type AgentHost, Sessions } from '../sessions/index.ts'
import { type AutoPorts, afterTurn, beforeStep, ContextMemory, isTooLarge, onModelError } from './auto.ts'
import { compact } from './compactor.ts'
import {
  CompactionUnable,
  compactionBlocked,
  compactionCancelled,
  compactionCompleted,
  compactionStarted,
  compactSession
} from './contract.ts'
import { begun, blocked, cancelled, compactionState, eventsOf } from './records.ts'
import { Compaction, CompactionNotes } from './service.ts'

export default definePack({
  name: 'compaction',
  version: '1.0.0',
  description: 'Makes the context of agents smaller: before it overflows, when it did, and when the user asks for it',
  area: 'Agent',
  needs: { sessions: Sessions, histories: Histories, agents: Agents, hooks: TurnHooks, llm: Llm },
  optional: { config: Config },
  provides: [Compaction],
  errors: [CompactionUnable],
  config: Type.Object({
    retry_base_ms: Type.Number({ minimum: 0, default: 500, description: 'first delay before a failed request for a summary is sent again' })
  }),
  setup(ctx, { sessions, histories, agents, hooks, llm, config }) {
    type AnyEmit = (payload: unknown, target: EventTarget) => void
    const emitters = new Map<string, AnyEmit>()
    for (const spec of [compactionStarted, compactionBlocked, compactionCancelled, compactionCompleted])
      emitters.set(spec.type, ctx.event(spec) as AnyEmit) // `eventsOf` makes the payload that fits
    ctx.contribute(HistoryStates, compactionState)
    ctx.contribute(RecordEvents, {
      records: recordTypes(begun, blocked, cancelled, contextCompacted),
      events: record => eventsOf(record),
      tell: ({ id, session }, { type, payload, at }) => emitters.get(type)?.(payload, { session_id: session.id, subject: id, time: at })
    })
    ctx.contribute(AgentRepairs, {
      name: 'compaction',
      records: async (_agent, history) => ((await history.track(compactionState)).value.running ? [cancelled.of({})] : [])
    })

    const slot = defineSlot('context-memory', async (host: AgentHost) => {
      const history = await histories.of(host)
      return new ContextMemory(await agents.of(host), history, await history.track(compactionState))
    })
    ctx.slot(slot)
    sessions.onArchive(async session => {
      const memories = await Promise.all(session.agents().map(agent => agent.peek(slot)?.catch(() => undefined)))
      for (const memory of memories) await memory?.drop()
    })
    const notes = ctx.collect(CompactionNotes)
    const ports: AutoPorts = {
      llm,
      log: ctx.log,
      accounts: ctx,
      retryBaseMs: ctx.config.retry_base_ms,
      notes: () => notes.entries(),
      limits: () => {
        const { compaction_trigger_ratio: ratio = 0.85, reserved_context_size: reserved = 50_000 } = config()?.get(loopControlSection) ?? {}
        return { ratio, reserved }
      }
    }
    ctx.tap(hooks.stepBegin, info => info.agent.whenOpen(slot, memory => beforeStep(ports, memory, info)), { stage: -100 })
    // Behind all others: what becomes ready later finds no turn.
    ctx.tap(hooks.turnEnd, ({ agent }) => agent.whenOpen(slot, memory => afterTurn(ports, memory)), { stage: 1000 })
    ctx.tap(hooks.modelError, (error, info) =>
      isTooLarge(error) ? info.agent.whenOpen(slot, memory => onModelError(ports, memory, error, info)) : undefined
    )

    /** Resolves when it has begun. */
    const start = async (host: AgentHost, instruction: string | undefined): Promise<void> => {
      const agent = await agents.of(host)
      const history = await histories.of(host)
      const { work } = host.session
      await new Promise<void>((begun, refused) => {
        let isTold = false
        const compacting = async (signal: AbortSignal) => {
          if (history.messages.count() === 0) throw new AppError(CompactionUnable, { message: 'there is nothing to compact' })
          const memory = await host.get(slot)
          await memory.drop()
          const window = memory.window.bind(memory)
          const input = { agent, history, window, ...(instruction === undefined ? {} : { instruction }) }
          const started = () => {
            isTold = true
            work.background(1)
            begun()
          }
          await memory.whileOpen(signal, either => compact(ports, input, either, started))
        }
        const over = () => {
          if (isTold) work.background(-1) // a prompt that waited is at work by now
        }
        agent.exclusive(compacting, { refusal: CompactionUnable }).finally(over).catch(refused)
      })
    }
    ctx.provide(Compaction, { start: (agent, { instruction } = {}) => start(agent, instruction) })
    ctx.route(compactSession, async ({ params: { session_id }, body }) => {
      const session = await sessions.load(session_id)
      session.assertWritable()
      const main = session.agent('main')
      if (!main) throw new AppError(CompactionUnable, { message: 'there is nothing to compact' })
      const instruction = body?.instruction?.trim()
      await start(main, instruction === '' ? undefined : instruction)
      return {}
    })
  }
})
