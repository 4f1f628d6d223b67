/** Wires scheduled prompts: a table per session, one clock for all of them, the tools of main agents. */
import { definePack, defineSlot, SessionMoved } from '../../kernel/index.ts'
import { Agents } from '../agent/index.ts'
import { Config, ConfigSections } from '../config/index.ts'
import { Histories, HistoryStates, RecordEvents, recordTypes } from '../history/index.ts'
import { type AgentHost, Sessions, sessionArchived } from '../sessions/index.ts'
import { ToolPolicies, Tools } from '../tools/index.ts'
import { Clock } from './clock.ts'
import { type CronOrigin, cronFired, cronSection, dueStore } from './contract.ts'
import { cronState, eventsOf, firedRecord } from './records.ts'
import { CronTable } from './table.ts'
import { createTools } from './tools.ts'

/** A session that nobody may fire in now is looked at again after this time, ms. */
const LATER_MS = 60_000

export default definePack({
  name: 'cron',
  description: 'Scheduled prompts: CronCreate, CronList and CronDelete for main agents',
  area: 'Agent',
  needs: { sessions: Sessions, histories: Histories, agents: Agents },
  optional: { config: Config },
  setup(ctx, { sessions, histories, agents, config }) {
    ctx.contribute(ConfigSections, cronSection)
    const alone = { ...cronSection.default, ...cronSection.overlay?.(process.env) } as typeof cronSection.default
    const settings = () => config()?.get(cronSection) ?? alone
    const interval = () => {
      const { disabled, poll_interval_ms = 1000 } = settings()
      return disabled ? undefined : poll_interval_ms
    }

    const emit = ctx.event(cronFired)
    ctx.contribute(RecordEvents, {
      records: recordTypes(firedRecord),
      events: eventsOf,
      // What `eventsOf` made comes back.
      tell: (agent, { payload, at }) =>
        emit(payload as { origin: CronOrigin; prompt: string }, { session_id: agent.session.id, subject: agent.id, time: at })
    })
    ctx.contribute(HistoryStates, cronState)

    const clock: Clock = new Clock({
      now: () => ctx.now(),
      log: ctx.log,
      store: ctx.store(dueStore),
      interval,
      isGone: async session_id => (await sessions.state(session_id)) === undefined,
      async look(session_id) {
        const state = await sessions.state(session_id)
        if (!state) return 'gone'
        if (state.archived) return LATER_MS
        const session = await sessions.load(session_id).catch(err => {
          if (err instanceof SessionMoved) return undefined
          throw err
        })
        if (!session?.writable) return LATER_MS // another server has it, and fires
        if (session.work.main_turn_active) return 0
        const main = session.agent('main')
        if (!main) return 'gone'
        await (await tableOf(main)).fire()
        return LATER_MS
      }
    })
    ctx.own(() => clock.stop())
    const tables = defineSlot('cron', async (agent: AgentHost) =>
      CronTable.open(agent, await histories.of(agent), {
        now: () => ctx.now(),
        newId: () => ctx.newId(),
        engine: host => agents.of(host),
        jitter: () => settings().no_jitter !== true,
        stale: () => settings().no_stale !== true,
        changed: due => clock.set(agent.session.id, due)
      })
    )
    ctx.slot(tables)
    const tableOf = (agent: AgentHost) => agent.get(tables)

    const tools = createTools({ tableOf, now: () => ctx.now() })
    for (const tool of tools) ctx.contribute(Tools, tool)
    ctx.contribute(ToolPolicies, {
      name: 'cron',
      refuses(agent, tool) {
        if (!tools.includes(tool)) return undefined
        if (interval() === undefined) return 'Scheduled prompts are switched off (SVC_CODE_DISABLE_CRON, cron.disabled).'
        return agent.record.type === 'main' ? undefined : `Only the main agent has ${tool.name}.`
      },
      basis: () => [interval() === undefined] // the type of an agent stays
    })
    sessions.onLoad(async session => {
      const main = session.agent('main')
      if (main && session.writable) await (await tableOf(main)).announce()
    })
    ctx.on(sessionArchived, ({ payload: { sessionId } }) => ctx.background(() => clock.forgetGone(sessionId)))
    ctx.tap(ctx.hooks.started, () => ctx.background(() => clock.load()))
    ctx.tap(ctx.hooks.stopping, () => clock.stop())
  }
})
