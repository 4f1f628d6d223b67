/** Wires plan mode: its state per agent, the guard, the two tools, the reminders, the profile field and the status. */
import { definePack, defineSlot, type Static } from '../../kernel/index.ts'
import { Agents, StatusFacts, StepInjectors } from '../agent/index.ts'
import { Config, defaultPlanModeSection, planModeSection } from '../config/index.ts'
import { Histories, type HistoryRecord, HistoryStates, RecordEvents, recordTypes } from '../history/index.ts'
import { approvals, Interactions } from '../interactions/index.ts'
import { Permissions } from '../permissions/index.ts'
import { AgentConfigHandlers, type AgentHost, agentCreated, type Session, SessionDefaults, Sessions } from '../sessions/index.ts'
import { ToolHooks, Tools } from '../tools/index.ts'
import { AgentPlan } from './agent-plan.ts'
import { planRevised, planRevision, revisionStore } from './contract.ts'
import { type Planning, refusalOf } from './guard.ts'
import { beginState, planState, reminderVariant, revisionState } from './state.ts'
import { reminderOf, subagentReminder } from './texts.ts'
import { createEnterPlanMode, createExitPlanMode, type PlanPorts } from './tools.ts'

export default definePack({
  name: 'plan',
  area: 'Agent',
  description: 'Plan mode: study and plan first, change only what the user approved',
  needs: { sessions: Sessions, histories: Histories, agents: Agents, hooks: ToolHooks },
  optional: { config: Config, interactions: Interactions, permissions: Permissions },
  setup(ctx, { sessions, histories, agents, hooks, config, interactions, permissions }) {
    const configured = () => (config()?.get(defaultPlanModeSection) || config()?.get(planModeSection)) ?? false
    ctx.contribute(SessionDefaults, { name: 'plan_mode', value: configured })
    /** Whether the session begins in plan mode. */
    const byDefault = ({ state }: Session) => (state.defaults?.plan_mode ?? configured()) === true

    const open = async (agent: AgentHost, created: boolean): Promise<AgentPlan> => {
      const plan = await AgentPlan.open(agent, await histories.of(agent), agent.store(revisionStore))
      const begins = agent.record.type === 'main' && agent.session.writable && (created || plan.untouched)
      if (begins && byDefault(agent.session)) await plan.enter('default')
      return plan
    }
    /** Main agents that were made just now: their session begins. */
    const created = new WeakSet<AgentHost>()
    const slot = defineSlot<Promise<AgentPlan>, AgentHost>('plan', agent => {
      const opening = open(agent, created.has(agent))
      opening.catch(err => {
        if (agent.scope.closed || ctx.signal.aborted) return
        ctx.log.error({ err, session_id: agent.session.id }, 'the plan mode of an agent could not be read')
      })
      return opening
    })
    ctx.slot(slot)
    const planOf = async (agent: AgentHost) => agent.whenOpen(slot, plan => plan)
    ctx.on(agentCreated, ({ session_id, subject }) => {
      const agent = sessions.loaded(session_id)?.agent(subject)
      if (agent?.record.type !== 'main') return
      created.add(agent)
      planOf(agent).catch(() => undefined) // it is logged
    })
    // The status shows plan mode as soon as the session can be seen.
    sessions.onLoad(async session => {
      const main = session.agent('main')
      if (main) await planOf(main).catch(() => undefined) // it is logged
    })

    const callerOf = ({ record, session }: AgentHost) =>
      record.parent_agent_id === undefined ? undefined : session.agent(record.parent_agent_id)
    const planning = async (agent: AgentHost): Promise<Planning | undefined> => {
      const plan = await planOf(agent)
      if (plan.active) return { own: true, file: plan.file, real: await plan.realFile() }
      for (let caller = callerOf(agent); caller; caller = callerOf(caller)) if ((await planOf(caller)).active) return { own: false }
      return undefined
    }

    ctx.contribute(HistoryStates, planState)
    ctx.contribute(HistoryStates, beginState)
    ctx.contribute(HistoryStates, revisionState)
    const emitRevision = ctx.event(planRevision)
    ctx.contribute(RecordEvents, {
      records: recordTypes(planRevised),
      events: record =>
        planRevised.is(record) ? [{ type: planRevision.type, payload: payloadOf(record), at: new Date(record.time ?? 0) }] : [],
      tell: (agent, { payload, at }) =>
        // What `events` made comes back.
        emitRevision(payload as Static<typeof planRevision.payload>, { session_id: agent.session.id, subject: agent.id, time: at })
    })

    const ports: PlanPorts = {
      planOf,
      announce: async agent => (await agents.of(agent)).announce(),
      alone: async agent => (await permissions()?.mode(agent)) === 'auto',
      ask: async (ask, signal) => (await interactions()?.ask(approvals, ask, signal)) ?? { how: 'withdrawn' }
    }
    ctx.contribute(Tools, createEnterPlanMode(ports))
    ctx.contribute(Tools, createExitPlanMode(ports))
    ctx.tap(hooks.before, context => refusalOf(context, planning), { stage: -100 })

    ctx.contribute(StepInjectors, {
      variant: reminderVariant,
      inject: ({ agent }, history) =>
        agent.whenOpen(slot, plan => {
          const last = history.reminder(reminderVariant)
          const { state } = plan
          if (!state.active && callerOf(agent)) return planning(agent).then(its => subagentReminder(its !== undefined, last?.form))
          if (!state.active && !state.told) return undefined
          const written = async () => (await plan.read().catch(() => '')) !== '' // what cannot be read, the review says
          return reminderOf({ state, file: plan.file ?? '', lost: last === undefined, written })
        })
    })
    ctx.contribute(StatusFacts, {
      field: 'plan_mode',
      value(agent) {
        const plan = agent.opened(slot)
        if (!plan) planOf(agent).catch(() => undefined) // it is logged
        return plan ? plan.active : created.has(agent) && agent.record.type === 'main' && byDefault(agent.session)
      },
      initial: byDefault
    })
    ctx.contribute(AgentConfigHandlers, {
      field: 'plan_mode',
      order: 40,
      async apply(session, value) {
        const main = await session.main()
        const plan = await planOf(main)
        if (value === true ? await plan.enter('user') : await plan.leave('user')) await ports.announce(main)
      }
    })
  }
})

function payloadOf({ type: _type, time: _time, ...payload }: HistoryRecord): Readonly<Record<string, unknown>> {
  return payload
}
