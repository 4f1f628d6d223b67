/** Submitting a prompt: checks and overrides in the contract's order (contract 2, POST prompts). */
import { AppError, invalid, type Static, within } from '../../kernel/index.ts'
import type { Agent, Agents, Prompt, PromptInput } from '../agent/index.ts'
import type { Histories } from '../history/index.ts'
import type { Llm } from '../llm/index.ts'
import type { Permissions } from '../permissions/index.ts'
import { type Session, SessionMissing, type Sessions } from '../sessions/index.ts'
import type { submitPrompt } from './contract.ts'
import { checkMessageMedia, checkUploads, commitMedia } from './media.ts'
import { type PromptMedia, type PromptSkills, SkillMissing } from './service.ts'

/** Body of POST prompts. */
export type SubmitBody = Static<NonNullable<typeof submitPrompt.body>>

/** Whom a prompt concerns; the optional ones answer undefined while their pack is not there. */
export interface SubmitPorts {
  readonly sessions: Sessions
  readonly agents: Agents
  readonly histories: Histories
  readonly llm: Llm
  readonly permissions: () => Permissions | undefined
  readonly media: () => PromptMedia | undefined
  readonly skills: () => PromptSkills | undefined
}

/**
 * Checks: media, session, skills, media of the session, agent, prompt id, readiness. Then the overrides profile (with model and thinking),
 * permission mode, disabled tools. Then the prompt is accepted.
 */
export async function submit(session_id: string, body: SubmitBody, ports: SubmitPorts): Promise<Prompt> {
  await checkUploads(body.content, ports)
  const session = await ports.sessions.load(session_id)
  await checkSkills(session, body, ports)
  await checkMessageMedia(session, body.content, ports)
  const there = await agentOf(session, ports.agents, body.agent_id)
  if (body.prompt_id !== undefined) there?.checkPromptId(body.prompt_id)
  const model = body.model || undefined // empty: as the agent has it
  await ports.llm.lookUp(model ?? there?.settings().model)
  const agent = there ?? (await ports.agents.of(await session.main()))
  await override(session, agent, { ...body, model }, ports)
  const content = await commitMedia(agent.host, body.content, ports)
  const input: PromptInput = { content, ...(body.prompt_id === undefined ? {} : { prompt_id: body.prompt_id }) }
  const prompt = await agent.submit(body.skills ? await bundled(agent, input, body.skills, ports) : input)
  const history = await ports.histories.of(agent.host)
  return { ...prompt, content: await history.inline(prompt.content) }
}

async function checkSkills(session: Session, body: SubmitBody, ports: SubmitPorts): Promise<void> {
  if (!body.skills) return
  if (body.prompt_id !== undefined) throw invalid([{ path: 'body.prompt_id', message: 'prompt_id cannot be combined with skills' }])
  const skills = ports.skills()
  if (!skills) throw new AppError(SkillMissing, { message: `skill not found: ${body.skills[0]?.name}` })
  await skills.check(session, body.skills)
}

async function bundled(
  agent: Agent,
  input: PromptInput,
  wanted: NonNullable<SubmitBody['skills']>,
  ports: SubmitPorts
): Promise<PromptInput> {
  return (await ports.skills()?.bundle(agent.host, input, wanted)) ?? input
}

/**
 * The target agent; undefined for a main one that comes with its first prompt: a prompt that is not accepted must not bring it. An
 * unknown one answers like an unknown session.
 */
async function agentOf(session: Session, agents: Agents, agent_id = 'main'): Promise<Agent | undefined> {
  const host = session.agent(agent_id)
  if (host) return await agents.of(host)
  if (agent_id !== 'main') throw new AppError(SessionMissing, { message: `agent not found: ${agent_id}` })
  session.assertWritable()
  return undefined
}

type Overrides = Pick<SubmitBody, 'profile' | 'thinking' | 'permission_mode' | 'disabled_tools'> & { readonly model?: string | undefined }

async function override(session: Session, agent: Agent, given: Overrides, ports: SubmitPorts): Promise<void> {
  const { profile, model, thinking, permission_mode, disabled_tools } = given
  await agent
    .configure({
      ...(profile === undefined ? {} : { profile }),
      ...(model === undefined ? {} : { model }),
      ...(thinking === undefined || thinking === '' ? {} : { thinking })
    })
    .catch((error: unknown) => {
      throw within('body', error)
    })
  if (permission_mode) await ports.permissions()?.setMode(agent.host, permission_mode)
  // Those of the main agent bind all agents of the session, also those to come.
  if (disabled_tools) await (await ports.agents.of(await session.main())).configure({ disabled_tools })
}
