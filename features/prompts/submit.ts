/** Submitting a prompt: checks and overrides in the contract's order (contract 2, POST prompts). */
import { AppError, invalid, type Static, within } from '../../kernel/index.ts'
import type { Agent, Agents, Prompt, PromptInput } from '../agent/index.ts'
import { FileMissing } from '../files/index.ts'
import type { Histories, WirePart } from '../history/index.ts'
import type { Llm } from '../llm/index.ts'
import type { Permissions } from '../permissions/index.ts'
import { type Session, SessionMissing, type Sessions } from '../sessions/index.ts'
import type { submitPrompt } from './contract.ts'
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
 * Checks: uploads, session, skills, committed media, agent, prompt id, readiness. Then the overrides profile (with model and thinking),
 * permission mode, disabled tools. Then the prompt is accepted.
 */
export async function submit(session_id: string, body: SubmitBody, ports: SubmitPorts): Promise<Prompt> {
  const media = ports.media()
  const uploads = references(body.content, 'file')
  if (uploads.length > 0) {
    if (!media) throw new AppError(FileMissing, { message: `file not found: ${uploads[0]}` })
    await media.checkUploads(body.content)
  }
  const session = await ports.sessions.load(session_id)
  await checkSkills(session, body, ports)
  const content = await withMessageMedia(session, body.content, ports)
  const committed = references(content, 'session_media')
  if (committed.length > 0) {
    if (!media) throw new AppError(FileMissing, { message: `file not found: ${committed[0]}` })
    await media.checkCommitted(session, content)
  }
  const there = await agentOf(session, ports.agents, body.agent_id)
  if (body.prompt_id !== undefined) there?.checkPromptId(body.prompt_id)
  const model = body.model || undefined // empty: as the agent has it
  ports.llm.resolve(model ?? there?.settings().model)
  const agent = there ?? (await ports.agents.of(await session.main()))
  await override(session, agent, { ...body, model }, ports)
  const recorded = uploads.length > 0 && media ? await media.commit(session, content) : content
  const input: PromptInput = { content: recorded, ...(body.prompt_id === undefined ? {} : { prompt_id: body.prompt_id }) }
  const prompt = await agent.submit(body.skills ? await bundled(agent, input, body.skills, ports) : input)
  const history = await ports.histories.of(agent.host)
  return { ...prompt, content: await history.inline(prompt.content) }
}

/** Media of messages of this session are given again by their id; the agent that gets them keeps them as its own. */
async function withMessageMedia(session: Session, content: readonly WirePart[], { histories }: SubmitPorts): Promise<readonly WirePart[]> {
  const parts: WirePart[] = []
  for (const part of content) {
    const [id] = references([part], 'session_media')
    const medium = id === undefined ? undefined : await histories.medium(session, id)
    if (!medium) parts.push(part)
    else {
      const data = (await medium.read()).toString('base64')
      parts.push({ ...part, source: { kind: 'base64', media_type: medium.media_type, data } })
    }
  }
  return parts
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
  if (permission_mode) await setPermissionMode(agent, permission_mode, ports)
  // Those of the main agent bind all agents of the session, also those to come.
  if (disabled_tools) await (await ports.agents.of(await session.main())).configure({ disabled_tools })
}

/** Changes the mode of an agent and shows it. From the main agent it reaches all. */
export async function setPermissionMode(
  agent: Agent,
  mode: 'manual' | 'auto' | 'yolo',
  { permissions }: Pick<SubmitPorts, 'permissions'>
): Promise<void> {
  const service = permissions()
  if (!service) return
  const before = await service.mode(agent.host)
  await service.setMode(agent.host, mode)
  if (before !== mode) agent.announce({ permission: mode })
}

/** Ids that the parts refer to in one way: uploads (`file`), or media of the session. */
function references(content: readonly WirePart[], kind: 'file' | 'session_media'): string[] {
  return content.flatMap(part => {
    if (part.type === 'file') return kind === 'file' ? [String(part.file_id)] : []
    const source = part.source as { readonly kind?: string; readonly file_id?: string } | undefined
    return source?.kind === kind ? [String(source.file_id)] : []
  })
}
