/** Wires skills: the catalog, its routes, activation, skills of prompts, the tool Skill and the list in the system prompt. */
import { AppError, definePack, type Static, Type } from '../../kernel/index.ts'
import { Agents, PromptBlocks } from '../agent/index.ts'
import { Config, ConfigSections, extraSkillDirsSection, mergeSkillsSection } from '../config/index.ts'
import { Histories, RecordEvents, recordTypes } from '../history/index.ts'
import { Llm } from '../llm/index.ts'
import { checkMessageMedia, checkUploads, commitMedia, PromptMedia, PromptSkills } from '../prompts/index.ts'
import { type AgentHost, Sessions } from '../sessions/index.ts'
import { ToolPolicies, Tools } from '../tools/index.ts'
import { WorkspaceMissing, Workspaces } from '../workspaces/index.ts'
import { called, eventsOf, promptSkills, skillForUser } from './activate.ts'
import { SkillCatalog } from './catalog.ts'
import { ChainsSlot } from './chains.ts'
import { activateSkill, listSessionSkills, listWorkspaceSkills, type SkillDescriptor, skillActivated } from './contract.ts'
import { block } from './expand.ts'
import { listing } from './listing.ts'
import { type Skill, SkillSources, Skills } from './service.ts'
import { skillBody } from './skill-files.ts'
import { skillTool } from './tool.ts'

/** Whether the skills that come with the server are there. */
const builtinSkillsSection = { name: 'builtin_product_skills', schema: Type.Boolean(), default: true }

const shown = ({ name, description, path, source, type, disable_model_invocation }: Skill): Static<typeof SkillDescriptor> => ({
  name,
  description,
  path,
  source,
  type,
  ...(disable_model_invocation ? { disable_model_invocation } : {})
})

export default definePack({
  name: 'skills',
  description: 'Skills: texts that users and the model call by name',
  area: 'Agent',
  needs: { sessions: Sessions, workspaces: Workspaces, agents: Agents, histories: Histories, llm: Llm },
  optional: { config: Config, media: PromptMedia },
  provides: [Skills, PromptSkills],
  setup(ctx, { sessions, workspaces, histories, llm, config, agents, media }) {
    ctx.contribute(ConfigSections, builtinSkillsSection)
    const sources = ctx.collect(SkillSources)
    const catalog = new SkillCatalog({
      home: ctx.home,
      log: ctx.log,
      sources: () => sources.entries(),
      accounts: ctx,
      settings: () => ({
        extra: config()?.get(extraSkillDirsSection) ?? [],
        merge: config()?.get(mergeSkillsSection) ?? true,
        builtin: config()?.get(builtinSkillsSection) ?? true
      })
    })
    const skills: Skills = {
      list: cwd => catalog.list(cwd),
      find: (cwd, name) => catalog.find(cwd, name),
      render: async (skill, call) => block(skill, skill.body ?? (await skillBody(skill.path, ctx.home)), call)
    }
    ctx.provide(Skills, skills)
    ctx.provide(PromptSkills, promptSkills(skills, ctx.newId))

    const emit = ctx.event(skillActivated)
    ctx.contribute(RecordEvents, {
      records: recordTypes('prompt.accepted', 'message'),
      events: eventsOf,
      // Only what `eventsOf` made comes back.
      tell: (agent, { payload, at }) =>
        emit(payload as Parameters<typeof emit>[0], { session_id: agent.session.id, subject: agent.id, time: at })
    })

    ctx.slot(ChainsSlot)
    const tool = skillTool({ skills, agents, histories, newId: ctx.newId })
    ctx.contribute(Tools, tool)
    const policies = ctx.collect(ToolPolicies)
    const mayLoad = (agent: AgentHost) => policies.items().every(policy => policy.refuses(agent, tool) === undefined)
    ctx.contribute(PromptBlocks, {
      name: 'skills',
      order: 420,
      basis: ({ session }) => catalog.basis(session.cwd),
      render: async agent => {
        const text = listing(mayLoad(agent) ? await catalog.list(agent.session.cwd) : [])
        return { text: text.section, variables: { skills: text.list, skills_section: text.section } }
      }
    })

    ctx.route(listSessionSkills, async ({ params }) => {
      const { cwd } = await sessions.load(params.session_id)
      return { skills: (await catalog.list(cwd)).map(shown) }
    })
    ctx.route(listWorkspaceSkills, async ({ params }) => {
      const workspace = await workspaces.get(params.workspace_id)
      if (!workspace) throw new AppError(WorkspaceMissing)
      return { skills: (await catalog.list(workspace.root)).map(shown) }
    })
    ctx.route(activateSkill, async ({ params: { session_id, skill_name }, body: { args, attachments = [] } }) => {
      const ports = { histories, media }
      await checkUploads(attachments, ports, 'body.attachments')
      const session = await sessions.load(session_id)
      const skill = await skillForUser(skills, session, skill_name)
      await checkMessageMedia(session, attachments, ports)
      session.assertWritable()
      const there = session.agent('main')
      await llm.lookUp(there && (await agents.of(there)).settings().model)
      const text = await called(skills, skill, { session, args, trigger: 'user-slash' }, ctx.newId())
      const host = await session.main()
      const agent = await agents.of(host)
      const content = [...text.content, ...(await commitMedia(host, attachments, ports))]
      const { prompt_id, status } = await agent.submit({ content, origin: text.origin })
      // Where a turn runs, it takes the skill with its next step; where that has just ended, the skill gets the next turn.
      if (status === 'queued') await agent.steer([prompt_id]).catch(() => undefined)
      const blocked = (await histories.of(host)).prompt(prompt_id)?.status === 'blocked'
      return { activated: !blocked, skill_name: skill.name }
    })
  }
})
