/** The tool by which the model loads a skill. */
import { defineSlot, type Static, Type } from '../../kernel/index.ts'
import type { Agents } from '../agent/index.ts'
import type { Histories } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { type Tool, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import { called } from './activate.ts'
import type { Skill, Skills } from './service.ts'

const parameters = Type.Object(
  {
    skill: Type.String({ minLength: 1, description: 'Name of the skill, as it is listed' }),
    args: Type.Optional(Type.String({ description: 'Arguments, as a user would write them behind the name' }))
  },
  { additionalProperties: false }
)

/** One skill is loaded so often in one turn: a skill that calls itself ends. */
const perTurn = 3

/** What was loaded in the newest turn. */
export const LoadedSlot = defineSlot<{ turn_id: number; counts: Map<string, number> }, AgentHost>('skills-loaded', () => ({
  turn_id: -1,
  counts: new Map()
}))

/** Skills that the model may load. */
export const forModel = (skill: Skill): boolean =>
  (skill.type === 'prompt' || skill.type === 'inline') && !skill.disable_model_invocation && !skill.sub

export interface SkillToolPorts {
  readonly skills: Skills
  readonly agents: Agents
  readonly histories: Histories
  readonly newId: () => string
}

export function skillTool({ skills, agents, histories, newId }: SkillToolPorts): Tool<typeof parameters> {
  return {
    name: 'Skill',
    description: `Loads a skill: instructions for a kind of task, written by the user, the project or a plugin. Use it as soon as a listed skill fits the task,
before you begin. Its text follows in the conversation; follow it. Only skills that are listed in the system prompt or that the user names.`,
    parameters,
    source: 'builtin',
    async prepare({ skill: name, args }: Static<typeof parameters>, env: ToolEnv) {
      const skill = await skills.find(env.cwd, name.replace(/^\//, ''))
      if (!skill) {
        const known = (await skills.list(env.cwd)).filter(forModel).map(each => each.name)
        throw new ToolRefusal(
          `There is no skill "${name}". ${known.length > 0 ? `Known: ${known.slice(0, 50).join(', ')}.` : 'There are none.'}`
        )
      }
      if (!forModel({ ...skill, sub: false }))
        throw new ToolRefusal(`The skill "${skill.name}" is not for you to load; the user can start it.`)
      return {
        description: `Load the skill ${skill.name}`,
        display: { kind: 'skill_call', skill_name: skill.name, ...(args === undefined ? {} : { args }) },
        accesses: [],
        approval_argument: skill.name,
        async run() {
          const nested = countLoad(env, skill)
          const history = await histories.of(env.agent)
          const byUser = history.lastTurn()?.origin
          const within = nested || byUser?.kind === 'skill_activation' || Array.isArray(byUser?.skillActivations)
          const call = { session: env.agent.session, args, trigger: within ? ('nested-skill' as const) : ('model-tool' as const) }
          const { content, origin } = await called(skills, skill, call, newId())
          const fate = await (await agents.of(env.agent)).inject({ content, origin, admission: 'activeTurnOnly' })
          if (fate !== 'joins') throw new ToolRefusal('The turn is ending: the skill was not loaded.')
          return { output: `The skill "${skill.name}" is loaded inline: its text follows.` }
        }
      }
    }
  }
}

/** Whether another skill was loaded in this turn before. Throws ToolRefusal where this one was loaded too often. */
function countLoad({ agent, turn_id }: ToolEnv, skill: Skill): boolean {
  const loaded = agent.get(LoadedSlot)
  if (loaded.turn_id !== turn_id) {
    loaded.turn_id = turn_id
    loaded.counts.clear()
  }
  const key = skill.name.toLowerCase()
  const count = (loaded.counts.get(key) ?? 0) + 1
  if (count > perTurn) throw new ToolRefusal(`The skill "${skill.name}" was loaded ${perTurn} times in this turn: go on with what it says.`)
  const nested = loaded.counts.size > 0
  loaded.counts.set(key, count)
  return nested
}
