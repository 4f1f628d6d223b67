/** The tool AgentSwarm: one task for many items, each with an agent of its own. */
import { headOf, type Static, Type } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { matchText, type RulePart, type Tool, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { type Chosen, limited, named, resumed } from './chosen.ts'
import { chosenModel, modelFor, type Pool } from './pool.ts'
import { type Pace, runSwarm } from './schedule.ts'
import { type Child, type ChildEnd, type ChildModel, SubagentRefused, type Subagents } from './service.ts'

export interface SwarmPorts {
  readonly subagents: Subagents
  readonly pool: () => Pool | undefined
  readonly modelOf: (agent: AgentHost) => Promise<ChildModel>
  readonly pace: () => Pace
  readonly timeoutMs: () => number
  /** The agent works as a swarm from now on, until its turn ends. */
  readonly enter: (agent: AgentHost) => Promise<void>
}

const maxItems = 128
const placeholder = '{{item}}'

const fields = {
  description: Type.String({ minLength: 1, maxLength: 200, description: 'The work in a few words' }),
  prompt_template: Type.Optional(Type.String({ minLength: 1, description: `The task of each agent; ${placeholder} stands for its item` })),
  items: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems, description: 'One agent for each' })),
  resume_agent_ids: Type.Optional(
    Type.Record(Type.String(), Type.String({ minLength: 1 }), {
      description: 'Agents that you started before, and that go on as what they are: id to what they are told'
    })
  ),
  subagent_type: Type.Optional(Type.String({ description: 'Profile of the agents for the items; default coder' }))
}
const parameters = Type.Object(fields, { additionalProperties: false })
const withModel = Type.Object({ ...fields, model: chosenModel }, { additionalProperties: false })
type Arguments = Static<typeof withModel>

interface Part {
  readonly label: string
  readonly prompt: string
  readonly who: Chosen
  /** Its time, from its first start on. */
  time?: ReturnType<typeof limited>
  child?: Child
  end?: ChildEnd
  /** It waits for the provider. */
  waits?: boolean
}

export function swarmTool(caller: AgentHost, ports: SwarmPorts): Tool | undefined {
  const profiles = ports.subagents.profilesFor(caller)
  if (profiles.length === 0) return undefined
  const pool = ports.pool()
  return {
    name: 'AgentSwarm',
    description: `Gives one task to many agents at once, one for each item, and returns all their answers. For work that falls into independent pieces of one kind.
It must be the only call of your response. At most ${maxItems} agents; at least two, unless agents are resumed.`,
    parameters: pool?.models ? withModel : parameters,
    source: 'builtin',
    prepare(args: Arguments, env) {
      const resumes = Object.entries(args.resume_agent_ids ?? {})
      const { items = [], prompt_template = '' } = args
      if (items.length > 0 && !prompt_template.includes(placeholder)) throw new ToolRefusal(`prompt_template must contain ${placeholder}.`)
      if (items.length + resumes.length > maxItems) throw new ToolRefusal(`At most ${maxItems} agents.`)
      if (resumes.length === 0 && items.length < 2) throw new ToolRefusal('A swarm has at least two items. Use Agent for one.')
      const parts: Part[] = resumes.map(([id, prompt]) => ({ label: id, prompt, who: resumed(profiles, id, env.agent) }))
      for (const item of items) {
        const prompt = prompt_template.replaceAll(placeholder, () => item)
        parts.push({ label: item, prompt, who: named(profiles, args.subagent_type) })
      }
      const names = [...new Set(parts.map(({ who }) => who.profile.name))]
      return {
        description: `Start ${parts.length} agents: ${args.description}`,
        display: {
          kind: 'agent_call',
          agent_name: names.join(', '),
          prompt: prompt_template || resumes.map(([, prompt]) => prompt).join('\n')
        },
        accesses: [{ kind: 'exclusive' as const }],
        limit_ms: 0, // each agent has a time of its own (`subagent.timeout_ms`)
        approval_argument: names.join(', '),
        parts: names.map(profileRule),
        async run(progress, signal) {
          try {
            const model = modelFor(args.model, pool, await ports.modelOf(env.agent))
            await ports.enter(env.agent)
            const spec = { caller: env.agent, tool_call_id: env.tool_call_id, background: false, model }
            const timeout = ports.timeoutMs()
            let over = 0
            const members = parts.map((part, at) => ({
              async work(attempt: number, mayWait: () => boolean) {
                part.time ??= limited(signal, timeout)
                const { time } = part
                try {
                  if (!part.child) {
                    const description = headOf(`${args.description}: ${part.label}`, 200)
                    part.child = await ports.subagents.child({ ...spec, ...part.who, description, swarm_index: at + 1 })
                    await part.child.announce()
                  }
                  part.waits = false
                  // Asked once: whether others are left may change while the answer goes on record.
                  const quiet = ({ code }: ChildEnd) => {
                    part.waits = code === 'provider.rate_limit' && mayWait() && !time.signal.aborted
                    return part.waits
                  }
                  const retry = attempt > 0 ? { origin: { kind: 'retry' } } : {}
                  const prompt = attempt > 0 ? 'The provider refused the last request for a while. Go on where you stopped.' : part.prompt
                  part.end = await part.child.work(prompt, time.signal, { ...retry, quiet })
                  if (part.waits) return 'limited' as const
                } catch (error) {
                  part.waits = false
                  part.end = { status: 'failed', text: '', error: error instanceof Error ? error.message : String(error) }
                }
                time.release()
                over++
                progress({
                  kind: 'progress',
                  text: `${over} of ${parts.length} agents have ended`,
                  percent: Math.round((100 * over) / parts.length)
                })
                return 'over' as const
              }
            }))
            await runSwarm(members, ports.pace(), signal).finally(() => {
              for (const { time } of parts) time?.release() // also of those that waited when the turn was aborted
            })
            for (const { child, waits } of parts) if (waits) await child?.stop(signal)
            return report(parts)
          } catch (error) {
            if (error instanceof SubagentRefused) throw new ToolRefusal(error.message)
            throw error
          }
        }
      }
    }
  }
}

/** Rules judge a swarm by each profile in it. */
function profileRule(name: string): RulePart {
  const means = (pattern: string) => matchText(pattern, name)
  return { covers: means, names: means }
}

function report(parts: readonly Part[]): ToolResult {
  const done = parts.filter(({ end }) => end?.status === 'completed').length
  const blocks = parts.map(({ label, child, end }) => {
    const id = child ? `\nagent_id: ${child.host.id}` : ''
    const status = end ? end.status : 'not started'
    const text = end?.status === 'completed' ? `\n\n${end.text}` : end?.error === undefined ? '' : `\nreason: ${end.error}`
    return `## ${label}${id}\nstatus: ${status}${text}`
  })
  return { output: [`${done} of ${parts.length} agents completed.`, ...blocks].join('\n\n'), ...(done === 0 ? { is_error: true } : {}) }
}
