/** A skill that was called: what the model gets, and what stands on record about it. */
import { AppError } from '../../kernel/index.ts'
import { coreRecord, type HistoryRecord, type Origin, type RecordEvent, type WirePart } from '../history/index.ts'
import { type PromptSkills, SkillMissing, SkillNotForUsers } from '../prompts/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import { skillActivated } from './contract.ts'
import type { Skill, SkillCall, Skills } from './service.ts'

/** Facts of an activation, as origins carry them. */
export type Activation = ReturnType<typeof activationOf>

function activationOf(id: string, skill: Skill, args: string | undefined) {
  return {
    activationId: id,
    skillName: skill.name,
    ...(args === undefined ? {} : { skillArgs: args }),
    skillType: skill.type,
    skillPath: skill.path,
    skillSource: skill.source
  }
}

/** Throws SkillMissing, SkillNotForUsers. */
export async function skillForUser(skills: Skills, { cwd }: Pick<Session, 'cwd'>, name: string): Promise<Skill> {
  const skill = await skills.find(cwd, name)
  if (!skill) throw new AppError(SkillMissing, { message: `skill not found: ${name}` })
  if (skill.type === 'reference')
    throw new AppError(SkillNotForUsers, { message: `the skill ${skill.name} cannot be activated by the user` })
  return skill
}

export interface Called {
  readonly content: readonly WirePart[]
  readonly origin: Origin
}

/** A call as a prompt or a notice of its own. */
export async function called(skills: Skills, skill: Skill, call: SkillCall, id: string): Promise<Called> {
  const content = [{ type: 'text', text: await skills.render(skill, call) }]
  if (!skill.command) return { content, origin: { kind: 'skill_activation', trigger: call.trigger, ...activationOf(id, skill, call.args) } }
  const { plugin_id: pluginId, name: commandName } = skill.command
  const args = call.args === undefined ? {} : { commandArgs: call.args }
  return { content, origin: { kind: 'plugin_command', trigger: call.trigger, activationId: id, pluginId, commandName, ...args } }
}

/** Skills that ride in front of a prompt: a text for each, and their activations in its origin. */
export function promptSkills(skills: Skills, newId: () => string): PromptSkills {
  const wanted = async (session: Session, given: readonly { readonly name: string }[]) => {
    const found: Skill[] = []
    for (const { name } of given) found.push(await skillForUser(skills, session, name))
    return found
  }
  return {
    async check(session, given) {
      for (const skill of await wanted(session, given)) await skills.render(skill, { session, trigger: 'user-slash' })
    },
    async bundle({ session }: AgentHost, input, given) {
      const found = await wanted(session, given)
      const texts = await Promise.all(
        found.map((skill, at) => skills.render(skill, { session, args: given[at]?.args, trigger: 'user-slash' }))
      )
      const skillActivations = found.map((skill, at) => activationOf(newId(), skill, given[at]?.args))
      return {
        ...input,
        content: [...texts.map(text => ({ type: 'text', text })), ...input.content],
        origin: { ...(input.origin ?? { kind: 'user' }), skillActivations }
      }
    }
  }
}

/** `skill.activated`: of a prompt when it is accepted, of what the model loaded when it reads it. */
export function eventsOf(given: HistoryRecord): readonly RecordEvent[] {
  const record = coreRecord(given)
  if (!record) return []
  const { origin } = record as { readonly origin?: Origin }
  if (!origin) return []
  const own = record.type === 'prompt.accepted' || (record.type === 'message' && record.prompt_id === undefined)
  if (!own) return []
  const at = new Date(record.time ?? 0)
  const event = ({ kind: _kind, ...payload }: Record<string, unknown>) => ({ type: skillActivated.type, payload, at })
  if (origin.kind === 'skill_activation') return [event(origin)]
  if (record.type !== 'prompt.accepted' || !Array.isArray(origin.skillActivations)) return []
  return (origin.skillActivations as Activation[]).map(activation => event({ ...activation, trigger: 'user-slash' }))
}
