/** Wires agents: their engines as slots, turn hooks, events, settings fields, recovery on load and the end of turns on shutdown. */
import { definePack, defineSlot, milliseconds, oneOf, Type } from '../../kernel/index.ts'
import { Config, ConfigSections, loopControlSection, tokenCountingSection } from '../config/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import { Interactions } from '../interactions/index.ts'
import { Llm } from '../llm/index.ts'
import { type AgentHost, Sessions } from '../sessions/index.ts'
import { ToolPolicies, ToolRunner } from '../tools/index.ts'
import { AgentEngine } from './agent.ts'
import type { AgentDeps } from './deps.ts'
import { agentEmits } from './emits.ts'
import { AgentRepairs, PromptBlocks, StepInjectors } from './extension-points.ts'
import { failureState } from './failure.ts'
import { contributeFields } from './fields.ts'
import { TurnHookCalls } from './hook-calls.ts'
import { createTurnHooks, TurnHooks } from './hooks.ts'
import { lastEndState } from './last-end.ts'
import { noticeState } from './notices.ts'
import { profilesOf } from './profiles.ts'
import { dateInjector } from './prompt/environment.ts'
import { identitySection } from './prompt/identity.ts'
import { tellRecords } from './record-events.ts'
import { Agents } from './service.ts'
import { endTurnsAtStop, followSessions, showApprovals, tellLengths } from './session-life.ts'
import { boundState, PromptDateSlot, refusalOf, ToolLimitsSlot, toolLimits } from './settings.ts'
import { factsOf, StatusFacts } from './status-facts.ts'

export default definePack({
  name: 'agent',
  version: '1.0.0',
  description: 'Agents at work: prompt queue, turns, steering, aborting, recovery',
  area: 'Agent',
  needs: { sessions: Sessions, histories: Histories, llm: Llm },
  optional: { runner: ToolRunner, config: Config, interactions: Interactions },
  provides: [Agents, TurnHooks],
  config: Type.Object({
    retry_base_ms: Type.Number({ minimum: 0, default: 500, description: 'first delay before a failed model request is sent again' }),
    delta_offset: oneOf(['turn', 'step'], {
      default: 'turn',
      description: 'what the offset of text deltas counts over; `step` for clients that count anew with every step'
    }),
    before_prompt_ms: milliseconds({
      minimum: 1,
      default: 630_000,
      description: 'how long a tap of beforePrompt may hold up a prompt'
    }),
    hook_ms: milliseconds({
      minimum: 1,
      default: 3_600_000,
      description: 'how long a tap of a step (compaction is one) or a reminder may hold up a turn'
    }),
    block_ms: milliseconds({
      minimum: 1,
      default: 30_000,
      description: 'how long a block of the system prompt, and what it follows from, may hold up a prompt'
    }),
    turn_end_ms: milliseconds({
      minimum: 1,
      default: 60_000,
      description: 'how long a tap of turnEnd may hold up the next turn'
    }),
    product: Type.String({ default: 'svc-code', description: 'name the agent gives itself, unless `identity.name` of the user is another' })
  }),
  setup(ctx, { sessions, histories, llm, runner, config, interactions }) {
    ctx.contribute(ConfigSections, identitySection)
    const hooks = createTurnHooks()
    const injectors = ctx.collect(StepInjectors)
    const blocks = ctx.collect(PromptBlocks)
    const repairs = ctx.collect(AgentRepairs)
    const statusFacts = ctx.collect(StatusFacts)
    const facts: Agents['facts'] = (of, place) => factsOf(statusFacts.entries(), of, place, ctx)
    const profiles = profilesOf(ctx)
    const emitOf = agentEmits(ctx)
    const engines = new WeakMap<AgentHost, AgentEngine>()
    ctx.contribute(HistoryStates, boundState)
    ctx.contribute(HistoryStates, noticeState)
    ctx.contribute(HistoryStates, failureState)
    ctx.contribute(HistoryStates, lastEndState)

    const deps: AgentDeps = {
      llm,
      hooks: new TurnHookCalls(hooks, ctx.blame, {
        limit_ms: ctx.config.hook_ms
      }),
      log: ctx.log,
      accounts: ctx,
      operator: ctx.operator,
      emit: emitOf,
      engines,
      goesOn: new WeakMap(),
      endRequests: async agent => (await interactions()?.recover(agent)) ?? [],
      repairs,
      runner,
      injectors,
      facts,
      profiles,
      prompt: {
        home: ctx.home,
        product: ctx.config.product,
        named: () => config()?.get(identitySection).name,
        blocks,
        now: ctx.now,
        accounts: ctx,
        blockMs: ctx.config.block_ms
      },
      loop: () => {
        const { max_steps_per_turn = 0, max_attempts_per_step = 10 } = config()?.get(loopControlSection) ?? {}
        return { max_steps: max_steps_per_turn, max_attempts: Math.max(1, max_attempts_per_step) }
      },
      tokenStrategy: () => config()?.get(tokenCountingSection).strategy ?? 'measured+estimated',
      deltaOffset: ctx.config.delta_offset,
      beforePromptMs: ctx.config.before_prompt_ms,
      turnEndMs: ctx.config.turn_end_ms,
      retryBaseMs: ctx.config.retry_base_ms,
      now: ctx.now,
      newId: ctx.newId
    }

    tellRecords(ctx, deps)
    ctx.slot(ToolLimitsSlot)
    ctx.slot(PromptDateSlot)
    const slot = defineSlot('agent-engine', async (agent: AgentHost) => {
      const engine = await AgentEngine.open(agent, await histories.of(agent), deps)
      engine.start()
      return engine
    })
    ctx.slot(slot)
    const of = async (agent: AgentHost) => agent.get(slot)

    ctx.provide(TurnHooks, hooks)
    ctx.provide(Agents, {
      profiles,
      facts,
      of,
      isOpen: agent => agent.peek(slot) !== undefined,
      modelOf(agent) {
        try {
          return engines.get(agent)?.model()
        } catch {
          return undefined // the turn that needs one tells what is missing
        }
      },
      main: async session_id => of(await (await sessions.load(session_id)).main())
    })
    ctx.contribute(
      StepInjectors,
      dateInjector(ctx.now, agent => agent.get(PromptDateSlot).date)
    )
    ctx.contribute(ToolPolicies, {
      name: 'agent',
      refuses: (agent, tool) => refusalOf(agent, tool.name),
      basis: toolLimits,
      entries: agent => agent.get(ToolLimitsSlot).entries
    })
    contributeFields(ctx, async session => of(await session.main()))

    const life = { sessions, histories, of, opened: (agent: AgentHost) => agent.peek(slot)?.catch(() => undefined) }
    followSessions(ctx, life)
    showApprovals(ctx, life)
    tellLengths(ctx, life)
    endTurnsAtStop(ctx, life)
  }
})
