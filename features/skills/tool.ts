/** The tool by which the model loads a skill. */
import { type Static, Type } from '../../kernel/index.ts'
import type { Agents } from '../agent/index.ts'
import type { Histories } from '../history/index.ts'
import { type Tool, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import { called } from './activate.ts'
import { ChainsSlot } from './chains.ts'
import { ownText } from './expand.ts'
import type { Skill, Skills } from './service.ts'

const parameters = Type.Object(
  {
    skill: Type.String({ minLength: 1, description: 'Name of the skill, as it is listed' }),
    args: Type.Optional(Type.String({ description: 'Arguments, as a user would write them behind the name' }))
  },
  { additionalProperties: false }
)

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
          const history = await histories.of(env.agent)
          const chains = env.agent.get(ChainsSlot)
          const place = chains.place({ turn_id: env.turn_id, step: history.openStep()?.step ?? 0 }, skill.name, args)
          if (place.over) throw new ToolRefusal(place.over)
          const byUser = history.lastTurn()?.origin
          const within = place.nested || byUser?.kind === 'skill_activation' || Array.isArray(byUser?.skillActivations)
          const call = { session: env.agent.session, args, trigger: within ? ('nested-skill' as const) : ('model-tool' as const) }
          const { content, origin } = await called(skills, skill, call, newId())
          const fate = await (await agents.of(env.agent)).inject({ content, origin, admission: 'activeTurnOnly' })
          if (fate !== 'joins') throw new ToolRefusal('The turn is ending: the skill was not loaded.')
          place.loaded(content.map(({ text }) => ownText(String(text))).join('\n'))
          return { output: `The skill "${skill.name}" is loaded inline: its text follows.` }
        }
      }
    }
  }
}
