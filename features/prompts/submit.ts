/** Submitting a prompt: checks and overrides in the contract's order (contract 2, POST prompts). */
import { AppError, invalid, type Static, within } from '../../kernel/index.ts'
import type { Agent, Agents, Prompt, PromptInput } from '../agent/index.ts'
import { FileMissing } from '../files/index.ts'
import type { Histories, WirePart } from '../history/index.ts'
import type { Llm } from '../llm/index.ts'
import type { Permissions } from '../permissions/index.ts'
import { type AgentHost, type Session, SessionMissing, type Sessions } from '../sessions/index.ts'
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
 * Checks: media, session, skills, media of the session, agent, prompt id, readiness. Then the overrides profile (with model and thinking),
 * permission mode, disabled tools. Then the prompt is accepted.
 */
export async function submit(session_id: string, body: SubmitBody, ports: SubmitPorts): Promise<Prompt> {
  const media = ports.media()
  const [upload] = references(body.content, 'file')
  if (upload !== undefined && !media) throw missing(upload)
  await media?.check(body.content)
  const session = await ports.sessions.load(session_id)
  await checkSkills(session, body, ports)
  await checkMessageMedia(session, body.content, ports)
  const there = await agentOf(session, ports.agents, body.agent_id)
  if (body.prompt_id !== undefined) there?.checkPromptId(body.prompt_id)
  const model = body.model || undefined // empty: as the agent has it
  ports.llm.resolve(model ?? there?.settings().model)
  const agent = there ?? (await ports.agents.of(await session.main()))
  await override(session, agent, { ...body, model }, ports)
  const again = await withMessageMedia(agent.host, body.content, ports)
  const content = (await media?.commit(agent.host, again)) ?? again
  const input: PromptInput = { content, ...(body.prompt_id === undefined ? {} : { prompt_id: body.prompt_id }) }
  const prompt = await agent.submit(body.skills ? await bundled(agent, input, body.skills, ports) : input)
  const history = await ports.histories.of(agent.host)
  return { ...prompt, content: await history.inline(prompt.content) }
}

const missing = (file_id: string) => new AppError(FileMissing, { message: `file not found: ${file_id}` })

/** Media that messages of the session refer to. Throws FileMissing for what is none, or of another kind than the part says. */
async function checkMessageMedia(session: Session, content: readonly WirePart[], { histories }: SubmitPorts): Promise<void> {
  for (const part of content) {
    const [id] = references([part], 'session_media')
    if (id === undefined) continue
    const medium = await histories.medium(session, id)
    if (!medium?.media_type.startsWith(`${part.type}/`)) throw missing(id)
  }
}

/** Media of messages of this session are given again by their id; the agent that gets them keeps them as its own. */
async function withMessageMedia(agent: AgentHost, content: readonly WirePart[], { histories }: SubmitPorts): Promise<readonly WirePart[]> {
  const parts: WirePart[] = []
  for (const part of content) {
    const [id] = references([part], 'session_media')
    if (id === undefined) {
      parts.push(part)
      continue
    }
    const medium = await histories.medium(agent.session, id)
    if (!medium) throw missing(id)
    const { attachment, media_type } = medium
    if (attachment) {
      const { file, shown, size: _size, ...facts } = attachment
      await histories.attach(agent, { ...facts, source: file, ...(shown && { shown: { media_type: shown.media_type, data: shown.file } }) })
      parts.push({ ...part, source: { kind: 'session_media', file_id: id, media_type } })
    } else parts.push({ ...part, source: { kind: 'base64', media_type, data: (await medium.read()).toString('base64') } })
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
  if (permission_mode) await ports.permissions()?.setMode(agent.host, permission_mode)
  // Those of the main agent bind all agents of the session, also those to come.
  if (disabled_tools) await (await ports.agents.of(await session.main())).configure({ disabled_tools })
}

/** Ids that the parts refer to in one way: uploads (`file`), or media of the session. */
function references(content: readonly WirePart[], kind: 'file' | 'session_media'): string[] {
  return content.flatMap(part => {
    if (part.type === 'file') return kind === 'file' ? [String(part.file_id)] : []
    const source = part.source as { readonly kind?: string; readonly file_id?: string } | undefined
    return source?.kind === kind ? [String(source.file_id)] : []
  })
}
