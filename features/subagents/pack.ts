/** Wires subagents: the tools Agent and AgentSwarm, swarm mode, profiles from files, the pool of models, and how clients see it all. */
import { definePack, defineSlot, milliseconds, Type } from '../../kernel/index.ts'
import { AgentRepairs, Agents, PromptBlocks, StatusFacts, StepInjectors, TurnHooks } from '../agent/index.ts'
import { Config, subagentSection } from '../config/index.ts'
import { followUndo, Histories, type HistoryRecord, HistoryStates, RecordEvents, UndoFollowers } from '../history/index.ts'
import { Llm } from '../llm/index.ts'
import { AgentConfigHandlers, type AgentHost, SessionChecks, Sessions } from '../sessions/index.ts'
import { resumeHint, Tasks } from '../tasks/index.ts'
import { ToolHooks, ToolSets } from '../tools/index.ts'
import { agentTool } from './agent-tool.ts'
import { createChildren, RunningSlot } from './children.ts'
import { subagentCompleted, subagentFailed, subagentSpawned, subagentStarted, subagentSuspended } from './contract.ts'
import { offerProfiles } from './offered-profiles.ts'
import { checkPool, poolOf } from './pool.ts'
import { begunState, eventsOf, failed, rosterState, shownOf, toldTypes } from './records.ts'
import { usualPace } from './schedule.ts'
import { StoppedSubagents, Subagents } from './service.ts'
import { leftByTool, SwarmMode, swarmState } from './swarm-mode.ts'
import { swarmTool } from './swarm-tool.ts'

/** What an agent is told that works for another one: else it takes that one's words for the user's, and asks what nobody answers. */
const forAnother = `# Who you work for
Another agent started you for a part of its work. Messages that stand here as the user's are from that agent, and so is your task. It sees \
nothing of what you do but your last message: put into it whatever it needs. Questions in your messages are answered by nobody: where \
something is unclear, take the sensible course and say at the end what was unclear and how you took it.`

export default definePack({
  name: 'subagents',
  description: 'Agents that work for others: one, many at once, in the foreground and in the background',
  area: 'Agent',
  needs: { sessions: Sessions, histories: Histories, agents: Agents, turns: TurnHooks, toolHooks: ToolHooks, llm: Llm },
  optional: { config: Config, tasks: Tasks },
  provides: [Subagents],
  config: Type.Object({
    max_depth: Type.Integer({ minimum: 1, default: 3, description: 'subagents below each other' }),
    max_running: Type.Integer({ minimum: 1, default: 128, description: 'subagents at work in one session' }),
    max_agents: Type.Integer({ minimum: 1, default: 2000, description: 'agents that one session ever has' }),
    swarm_spacing_ms: milliseconds({
      minimum: 0,
      default: usualPace.spacing_ms,
      description: 'between starts in a swarm, after the first five'
    }),
    swarm_limited_ms: milliseconds({
      minimum: 0,
      default: usualPace.limited_ms,
      description: 'the same, and before a retry, once the provider limits the rate'
    })
  }),
  setup(ctx, { sessions, histories, agents, turns, toolHooks, llm, config, tasks }) {
    const readProfiles = offerProfiles(ctx, sessions, config)
    ctx.contribute(HistoryStates, rosterState)
    ctx.contribute(HistoryStates, begunState)
    ctx.contribute(HistoryStates, swarmState)
    ctx.slot(RunningSlot)
    // Not for a side conversation, in which the user talks.
    const isChild = ({ record: { labels } }: AgentHost) => labels?.profile !== undefined
    ctx.contribute(PromptBlocks, { name: 'subagents', order: 110, render: agent => (isChild(agent) ? forAnother : '') })

    const emits = [subagentSpawned, subagentStarted, subagentSuspended, subagentCompleted, subagentFailed].map(spec => {
      const emit = ctx.event(spec)
      // Only what `eventsOf` made comes back: the payload fits the type.
      return [spec.type, emit as unknown as (payload: unknown, target: Parameters<typeof emit>[1]) => void] as const
    })
    const emitOf = new Map<string, (typeof emits)[number][1]>(emits)
    ctx.contribute(RecordEvents, {
      records: toldTypes,
      events: eventsOf,
      tell: (agent, { type, payload, at }) => emitOf.get(type)?.(payload, { session_id: agent.session.id, subject: agent.id, time: at })
    })
    // Nobody works any more for an agent whose process died, and the turn is over for which a tool made it a swarm.
    ctx.contribute(AgentRepairs, {
      name: 'subagents',
      async records(_agent, history) {
        const { entries } = (await history.track(rosterState)).value
        const died = entries.flatMap((entry): HistoryRecord[] =>
          entry.over ? [] : [failed.of({ subagentId: entry.id, error: 'the server ended meanwhile' })]
        )
        return [...died, ...leftByTool((await history.track(swarmState)).value)]
      },
      async notes(_agent, history) {
        const { entries } = (await history.track(rosterState)).value
        return Object.fromEntries(
          history.openCalls().flatMap(({ call }) => {
            const ids = entries.flatMap(entry => (entry.parent_tool_call_id === call.id ? entry.id : []))
            return ids.length === 0 ? [] : [[call.id, resumeHint(...ids)]]
          })
        )
      }
    })

    // Of an agent that nobody knows any more nothing goes on, whatever it began.
    const followers = ctx.collect(UndoFollowers)
    ctx.contribute(UndoFollowers, {
      name: 'subagents',
      async undone(agent, from) {
        const { agents: begun } = (await (await histories.of(agent)).track(begunState)).value
        const children = begun.flatMap(each => (each.begun >= from ? (agent.session.agent(each.id) ?? []) : []))
        await Promise.all(children.map(child => followUndo(followers.entries(), ctx, child, 0)))
      }
    })

    const slot = defineSlot('subagents', async (agent: AgentHost) => {
      const history = await histories.of(agent)
      const roster = await history.track(rosterState)
      const changed = () => void agents.of(agent).then(engine => engine.announce())
      return { roster, swarm: new SwarmMode(history, await history.track(swarmState), changed) }
    })
    ctx.slot(slot)
    const swarmOf = async (agent: AgentHost) => agent.whenOpen(slot, ({ swarm }) => swarm)
    sessions.onLoad(async session => {
      const agent = session.agent('main')
      if (agent) await swarmOf(agent)
      await readProfiles(session)
    })
    /** Sessions that were loaded before this pack came are opened by the first look. */
    const openedOf = (agent: AgentHost) => {
      const open = agent.opened(slot)
      if (!open) swarmOf(agent).catch(() => undefined) // whoever needs it hears it
      return open
    }
    ctx.contribute(StatusFacts, {
      field: 'subagents',
      places: ['snapshot'],
      value(agent) {
        const open = openedOf(agent)
        return open ? shownOf(open.roster.value, agent.session.id) : []
      }
    })
    ctx.contribute(StatusFacts, { field: 'swarm_mode', value: agent => openedOf(agent)?.swarm.on ?? false })
    ctx.contribute(StepInjectors, { variant: 'swarm_mode', inject: ({ agent }) => agent.whenOpen(slot, ({ swarm }) => swarm.remind()) })
    ctx.tap(turns.turnEnd, ({ agent }) => agent.whenOpen(slot, ({ swarm }) => swarm.turnEnd()))
    ctx.contribute(AgentConfigHandlers, {
      field: 'swarm_mode',
      order: 50,
      apply: async (session, value) => (await swarmOf(await session.main())).set(value === true, 'manual')
    })

    const { max_depth: maxDepth, max_running: maxRunning, max_agents: maxAgents } = ctx.config
    const listeners = ctx.collect(StoppedSubagents)
    const stopped = (agent: AgentHost) => {
      for (const each of listeners.items()) each.stopped(agent)
    }
    const begun = (agent: AgentHost, prompt: string) => {
      for (const each of listeners.items()) each.begun?.(agent, prompt)
    }
    const subagents = createChildren({ agents, histories, maxDepth, maxRunning, maxAgents, stopped, begun })
    ctx.provide(Subagents, subagents)
    const pool = () => poolOf(config())
    ctx.contribute(SessionChecks, { name: 'secondary_model', check: () => checkPool(pool(), llm) })
    const ports = {
      subagents,
      tasks,
      pool,
      async modelOf(agent: AgentHost) {
        const engine = await agents.of(agent)
        const { model, thinking } = engine.settings()
        return { ...(model === undefined ? {} : { alias: model }), ...(thinking === undefined ? {} : { thinking }) }
      },
      record: async (agent: AgentHost, record: HistoryRecord) => (await histories.of(agent)).append(record),
      timeoutMs: () => config()?.get(subagentSection).timeout_ms ?? subagentSection.default.timeout_ms,
      enter: async (agent: AgentHost) => (await swarmOf(agent)).set(true, 'tool'),
      pace: () => ({
        ...usualPace,
        spacing_ms: ctx.config.swarm_spacing_ms,
        limited_ms: ctx.config.swarm_limited_ms,
        ...maxConcurrency(process.env.SVC_CODE_AGENT_SWARM_MAX_CONCURRENCY)
      })
    }
    ctx.contribute(ToolSets, {
      name: 'subagents',
      names: ['Agent', 'AgentSwarm'],
      tools: agent => [agentTool(agent, ports), swarmTool(agent, ports)].flatMap(tool => tool ?? [])
    })
    // A swarm has its response for itself.
    ctx.tap(
      toolHooks.before,
      ({ tool, env }) => {
        const alone = tool.name === 'AgentSwarm' ? env.earlier.length === 0 : !env.earlier.some(call => call.tool === 'AgentSwarm')
        return alone
          ? undefined
          : ({ kind: 'deny', output: 'AgentSwarm must be the only call of a response. Make the call again by itself.' } as const)
      },
      { stage: -100 }
    )
  }
})

function maxConcurrency(given: string | undefined): { readonly max?: number } {
  const max = Number(given)
  return Number.isInteger(max) && max > 0 ? { max } : {}
}
