/** Makes agents that work for others, lets them work, and puts on record what becomes of them. */
import { defineSlot } from '../../kernel/index.ts'
import { type AgentProfile, type Agents, defaultProfile, type TurnOutcome } from '../agent/index.ts'
import { asData, fromModel, type Histories, type HistoryRecord } from '../history/index.ts'
import { sumUsage } from '../llm/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import { TaskStopped } from '../tasks/index.ts'
import { meansTool } from '../tools/index.ts'
import { completed, failed, spawned, started, stopped, suspended } from './records.ts'
import { type Child, type ChildEnd, type ChildModel, type ChildSpec, SubagentRefused, type Subagents } from './service.ts'

/** Shorter answers of built-in profiles are asked for more. */
const shortAnswer = 200
const more =
  'Your answer is very short. Whoever started you sees nothing else of your work: report what you did or found, with files, lines and results. If there is nothing to add, repeat it.'
const origin = { kind: 'system_trigger', name: 'subagent' }

export interface ChildrenPorts {
  readonly agents: Agents
  readonly histories: Histories
  /** Agents above each other, beside the main one. */
  readonly maxDepth: number
  /** Of one session: at work at a time, and ever. */
  readonly maxRunning: number
  readonly maxAgents: number
  /** One was stopped, which is on record. */
  readonly stopped: (agent: AgentHost) => void
  /** One is at work, which is on record, too. */
  readonly begun: (agent: AgentHost, prompt: string) => void
}

/** Agents at work for others, of a session; by a symbol those that are made. */
export const RunningSlot = defineSlot('subagents-running', (_session: Session) => new Set<string | symbol>())

function depthOf(agent: AgentHost): number {
  const parent = agent.record.type === 'sub' ? agent.session.agent(agent.record.parent_agent_id ?? 'main') : undefined
  return parent && parent !== agent ? 1 + depthOf(parent) : 0
}

export function createChildren({
  agents,
  histories,
  maxDepth,
  maxRunning,
  maxAgents,
  stopped: hearStopped,
  begun: hearBegun
}: ChildrenPorts): Subagents {
  const record = async (caller: AgentHost, ...records: HistoryRecord[]) => (await histories.of(caller)).append(...records)

  const profilesFor: Subagents['profilesFor'] = caller => {
    const all = agents.profiles(caller.session).filter(({ name }) => name !== defaultProfile)
    const own = all.find(({ name }) => name === caller.record.labels?.profile)
    const named = caller.record.type === 'main' ? ['*'] : own?.subagents
    if (named?.includes('*')) return all
    if (named) return all.filter(({ name }) => named.includes(name))
    return all.filter(profile => !delegates(profile))
  }

  /** Made anew, or the one that is taken up again. */
  async function taken({ caller, resume, profile, model: { alias, thinking } }: ChildSpec) {
    const labels = { profile: profile.name }
    const host = resume ?? (await caller.session.createAgent({ type: 'sub', parent_agent_id: caller.id, labels }))
    const engine = await agents.of(host)
    if (!resume) {
      const model = alias === undefined ? {} : { model: alias }
      await engine.configure({ profile: profile.name, ...model, ...(thinking === undefined ? {} : { thinking }) })
    }
    return { host, engine }
  }

  async function child(spec: ChildSpec): Promise<Child> {
    const { caller, resume } = spec
    const { session } = caller
    const running = session.get(RunningSlot)
    if (running.size >= maxRunning)
      throw new SubagentRefused(`${maxRunning} agents are at work in this session already. Wait for one of them.`)
    if (!resume) {
      if (depthOf(caller) + 1 > maxDepth)
        throw new SubagentRefused(`Agents below each other are limited to ${maxDepth}. Do the work yourself.`)
      if (session.agents().length > maxAgents)
        throw new SubagentRefused(`This session has ${maxAgents} agents already. Resume one of them.`)
    } else if (running.has(resume.id) || session.work.activeTurns().includes(resume.id)) {
      throw new SubagentRefused(`The agent ${resume.id} is at work.`)
    }
    // Before anything waits: calls of one response run side by side, and count each other.
    const place = resume?.id ?? Symbol('an agent that is made')
    running.add(place)
    const { host, engine } = await taken(spec).catch((error: unknown) => {
      running.delete(place)
      throw error
    })
    running.delete(place)
    running.add(host.id)
    const model: ChildModel = {
      ...(engine.settings().model === undefined ? {} : { alias: engine.settings().model }),
      thinking: engine.effort()
    }
    const subagentId = host.id

    const work: Child['work'] = async (prompt, signal, { origin: why = origin, quiet } = {}) => {
      running.add(host.id)
      try {
        await record(caller, started.of({ subagentId }))
        hearBegun(host, prompt)
        const end = await run(prompt, signal, why)
        if (end.status === 'completed') {
          const usage = end.usage ? { usage: end.usage } : {}
          await record(
            caller,
            completed.of({ subagentId, resultSummary: end.text, ...usage, contextTokens: engine.usage().context_tokens })
          )
        } else if (quiet?.(end)) await record(caller, suspended.of({ subagentId, reason: end.error ?? '' }))
        else if (end.status === 'failed') await record(caller, failed.of({ subagentId, error: end.error ?? '' }))
        else await stop(signal)
        return end
      } finally {
        running.delete(host.id)
      }
    }

    const stop: Child['stop'] = async signal => {
      await record(caller, stopped.of({ subagentId, ...(isCut(signal) ? { with_turn: true } : {}) }))
      hearStopped(host)
    }

    async function run(prompt: string, signal: AbortSignal, why: typeof origin | { readonly kind: string }): Promise<ChildEnd> {
      try {
        const first = await engine.run({ content: [{ type: 'text', text: asData(prompt) }], origin: why }, signal)
        const again = first.reason === 'completed' && isBuiltin(spec.profile) && first.text.length < shortAnswer && !first.truncated
        return endOf(again ? better(first, await engine.runNotice({ content: more, origin: why }, signal)) : first, signal)
      } catch (error) {
        if (signal.aborted) return { status: stoppedAs(signal), text: '', error: reasonOf(signal) }
        return { status: 'failed', text: '', error: error instanceof Error ? error.message : String(error) }
      }
    }

    return {
      host,
      spec,
      model,
      work,
      stop,
      abandon: () => void running.delete(host.id),
      announce: task_id =>
        record(
          caller,
          spawned.of({
            subagentId,
            subagentName: spec.profile.name,
            parentToolCallId: spec.tool_call_id,
            parentAgentId: caller.id,
            description: spec.description,
            ...(spec.swarm_index === undefined ? {} : { swarmIndex: spec.swarm_index }),
            runInBackground: spec.background,
            ...(model.alias === undefined ? {} : { model: model.alias }),
            ...(model.thinking ? { thinkingEffort: model.thinking } : {}),
            ...(task_id === undefined ? {} : { taskId: task_id })
          })
        ).catch((error: unknown) => {
          running.delete(host.id)
          throw error
        })
    }
  }

  return { profilesFor, child }
}

const builtin: ReadonlySet<string> = new Set(['coder', 'explore', 'plan'])
const isBuiltin = ({ name }: AgentProfile): boolean => builtin.has(name)

/** Whether agents of this profile can start others. */
function delegates({ tools, disallowed_tools = [] }: AgentProfile): boolean {
  const isAgent = (entry: string) => meansTool(entry, 'Agent')
  return (tools?.some(isAgent) ?? true) && !disallowed_tools.some(isAgent)
}

/** Somebody ended it, or nobody is left to wait. Who takes longer than it may has failed. */
const stoppedAs = ({ reason }: AbortSignal): 'cancelled' | 'failed' =>
  reason instanceof TaskStopped && ['timeout', 'output'].includes(reason.why) ? 'failed' : 'cancelled'
/** The turn of the caller ended first. */
const isCut = ({ aborted, reason }: AbortSignal): boolean => aborted && (!(reason instanceof TaskStopped) || reason.why === 'turn')
const reasonOf = ({ reason }: AbortSignal): string => (reason instanceof Error ? reason.message : 'it was stopped')

/** The longer answer with what both took. One that failed or was cut leaves the short one, which is an answer, too. */
function better(short: TurnOutcome, second: TurnOutcome): TurnOutcome {
  const isAnswer = second.reason === 'completed' && !second.truncated && second.text.length > 0
  const taken = isAnswer || second.reason === 'cancelled' ? second : short
  return { ...taken, usage: sumUsage(short.usage, second.usage) }
}

function endOf({ reason, error, text, truncated, usage }: TurnOutcome, signal: AbortSignal): ChildEnd {
  if (reason === 'completed' && truncated)
    return { status: 'failed', text: '', error: 'its answer was cut at the output limit of the model' }
  if (reason === 'completed') return { status: 'completed', text: fromModel(text), usage }
  if (reason === 'cancelled') return { status: stoppedAs(signal), text: '', error: signal.aborted ? reasonOf(signal) : 'it was stopped' }
  return { status: 'failed', text: '', error: error?.message ?? 'its turn failed', ...(error ? { code: error.code } : {}) }
}
