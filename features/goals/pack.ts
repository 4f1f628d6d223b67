/** Wires goals: the goal of each main agent, its tools, the turns that work on it, and how clients set and see it. */
import { definePack, defineSlot } from '../../kernel/index.ts'
import { Agents, promptCompleted, StepInjectors, TurnHooks } from '../agent/index.ts'
import { Histories, HistoryStates, RecordEvents, recordTypes } from '../history/index.ts'
import { Interactions } from '../interactions/index.ts'
import { Llm } from '../llm/index.ts'
import { Permissions } from '../permissions/index.ts'
import { AgentConfigHandlers, type AgentHost, type Session, Sessions } from '../sessions/index.ts'
import { ToolHooks, ToolSets } from '../tools/index.ts'
import { GoalEmpty, GoalExists, GoalMissing, GoalNotPausable, GoalNotResumable, GoalTooLong, goalUpdated, readGoal } from './contract.ts'
import { GoalDriver, mayHaveGoal } from './driver.ts'
import { eventsOf, goalRecord, goalState, goalTurn } from './goal.ts'
import { GoalKeeper } from './keeper.ts'
import { goalTools } from './tools.ts'

const errors = [GoalExists, GoalMissing, GoalNotPausable, GoalNotResumable, GoalEmpty, GoalTooLong]

export default definePack({
  name: 'goals',
  description: 'Goals: work that goes on turn after turn, within budgets',
  area: 'Agent',
  needs: { sessions: Sessions, histories: Histories, agents: Agents, turns: TurnHooks, llm: Llm, toolHooks: ToolHooks },
  optional: { permissions: Permissions, interactions: Interactions },
  errors,
  setup(ctx, { sessions, histories, agents, turns, llm, toolHooks, permissions, interactions }) {
    const emit = ctx.event(goalUpdated)
    ctx.contribute(HistoryStates, goalState)
    ctx.contribute(RecordEvents, {
      records: recordTypes(goalRecord, goalTurn),
      events: eventsOf,
      // Only what `events` made comes back.
      tell: (agent, { payload, at }) =>
        emit(payload as Parameters<typeof emit>[0], { session_id: agent.session.id, subject: agent.id, time: at })
    })

    const slot = defineSlot('goal', async (agent: AgentHost) => {
      const history = await histories.of(agent)
      const ports = { now: ctx.now, newId: ctx.newId, price: llm.price }
      return new GoalDriver(await GoalKeeper.open(agent, history, ports), history, agents)
    })
    ctx.slot(slot)
    const of = (agent: AgentHost) => agent.get(slot)
    /** Of an agent that may have a goal; at once, when it is known whether it has. */
    const ask = <R>(agent: AgentHost, what: (driver: GoalDriver) => R | Promise<R>) =>
      mayHaveGoal(agent) ? agent.whenOpen(slot, what) : undefined
    const main = async (session: Session) => of(await session.main())

    sessions.onLoad(async session => {
      const agent = session.agent('main')
      if (agent && session.writable) await of(agent)
    })
    sessions.onArchive(async session => {
      await (await session.agent('main')?.peek(slot))?.rest('the session was archived')
    })
    ctx.tap(turns.stepBegin, info => ask(info.agent, driver => driver.stepBegin(info)))
    ctx.tap(turns.turnEnd, info => ask(info.agent, driver => driver.turnEnd(info)))
    ctx.tap(toolHooks.before, context => ask(context.env.agent, driver => driver.guard(context)), { stage: -100 })
    ctx.contribute(StepInjectors, { variant: 'goal', inject: info => ask(info.agent, driver => driver.remind(info)) })
    ctx.on(promptCompleted, ({ session_id, subject, payload }) => {
      const opened =
        subject === 'main' && payload.reason === 'blocked'
          ? sessions
              .loaded(session_id ?? '')
              ?.agent('main')
              ?.peek(slot)
          : undefined
      if (!opened) return
      ctx.background(async () => {
        const { keeper } = await opened
        if (keeper.goal?.status === 'active') await keeper.block('system', 'a hook blocked a prompt')
      })
    })

    const tools = goalTools({ of, permissions, interactions })
    ctx.contribute(ToolSets, { name: 'goals', names: tools.map(({ name }) => name), tools: agent => (mayHaveGoal(agent) ? tools : []) })

    ctx.route(readGoal, async ({ params: { session_id } }) => {
      const agent = (await sessions.load(session_id)).agent('main')
      return (agent && (await of(agent)).keeper.snapshot()) ?? null
    })
    ctx.contribute(AgentConfigHandlers, {
      field: 'goal_objective',
      order: 60,
      errors: [GoalExists, GoalEmpty, GoalTooLong],
      apply: async (session, value) => (await main(session)).create(String(value))
    })
    ctx.contribute(AgentConfigHandlers, {
      field: 'goal_control',
      order: 70,
      errors: [GoalMissing, GoalNotPausable, GoalNotResumable],
      async apply(session, value) {
        const driver = await main(session)
        if (value === 'pause') await driver.pause()
        else if (value === 'resume') await driver.resume()
        else await driver.cancel()
      }
    })
  }
})
