/** Wires prompts: submit, list, steer, abort. */
import { AppError, definePack } from '../../kernel/index.ts'
import { Agents, type Prompt, PromptMissing } from '../agent/index.ts'
import { FileMissing } from '../files/index.ts'
import { Histories } from '../history/index.ts'
import { Llm } from '../llm/index.ts'
import { type PermissionMode, Permissions } from '../permissions/index.ts'
import { AgentConfigHandlers, type Session, Sessions } from '../sessions/index.ts'
import { abortPrompt, abortSession, listPrompts, steerPrompt, steerPrompts, submitPrompt } from './contract.ts'
import { PromptMedia, PromptSkills, SkillMissing, SkillNotForUsers } from './service.ts'
import { submit } from './submit.ts'

export default definePack({
  name: 'prompts',
  version: '1.0.0',
  description: 'Prompts: submit with overrides, list, steer, abort',
  area: 'Agent',
  needs: { sessions: Sessions, agents: Agents, histories: Histories, llm: Llm },
  optional: { permissions: Permissions, media: PromptMedia, skills: PromptSkills },
  errors: [FileMissing, SkillMissing, SkillNotForUsers],
  setup(ctx, { sessions, agents, histories, llm, permissions, media, skills }) {
    /** The main agent, if the session has one already: looking and aborting create nothing. */
    const mainOf = async (session_id: string) => {
      const main = (await sessions.load(session_id)).agent('main')
      return main && (await agents.of(main))
    }
    /** For changes: the turn may run in the process that owns the session. */
    const owned = async (session_id: string) => {
      ;(await sessions.load(session_id)).assertWritable()
      return await mainOf(session_id)
    }
    /** Agents that are open come first: what runs is theirs. Of the others, only the one whose journal knows the id is opened. */
    const acceptedBy = async (session: Session, prompt_id: string) => {
      const hosts = session.agents()
      const open = hosts.filter(host => agents.isOpen(host))
      for (const host of open) {
        const agent = await agents.of(host)
        if (agent.knows(prompt_id)) return agent
      }
      for (const host of hosts) {
        if (!open.includes(host) && (await histories.hasPrompt(host, prompt_id))) return await agents.of(host)
      }
      return undefined
    }
    const steer = async (session_id: string, prompt_ids: readonly string[]) => {
      const session = await sessions.load(session_id)
      session.assertWritable()
      const agent = await acceptedBy(session, prompt_ids[0] ?? '')
      if (!agent) throw new AppError(PromptMissing)
      await agent.steer(prompt_ids)
      return { steered: true, prompt_ids: [...prompt_ids] }
    }

    ctx.route(listPrompts, async ({ params }) => {
      const agent = await mainOf(params.session_id)
      if (!agent) return { active: null, queued: [] }
      const history = await histories.of(agent.host)
      const whole = async (prompt: Prompt) => ({ ...prompt, content: [...(await history.inline(prompt.content))] })
      const [active, queued] = [agent.active(), agent.queued()] // in one tick: a prompt is in one of them
      return { active: active ? await whole(active) : null, queued: await Promise.all(queued.map(whole)) }
    })
    ctx.route(submitPrompt, async ({ params, body }) => {
      const prompt = await submit(params.session_id, body, { sessions, agents, histories, llm, permissions, media, skills })
      return { ...prompt, content: [...prompt.content] }
    })
    ctx.route(steerPrompts, ({ params, body }) => steer(params.session_id, body.prompt_ids))
    ctx.route(steerPrompt, ({ params }) => steer(params.session_id, [params.prompt_id]))
    ctx.route(abortPrompt, async ({ params: { session_id, prompt_id } }) => {
      const session = await sessions.load(session_id)
      session.assertWritable()
      const agent = await acceptedBy(session, prompt_id)
      if (!agent) throw new AppError(PromptMissing)
      await agent.abortPrompt(prompt_id)
      return { aborted: true }
    })
    ctx.route(abortSession, async ({ params }) => {
      await (await owned(params.session_id))?.abort(true)
      return { aborted: true }
    })

    ctx.contribute(AgentConfigHandlers, {
      field: 'permission_mode',
      order: 30,
      async apply(session, value) {
        const { host } = await agents.of(await session.main())
        await permissions()?.setMode(host, value as PermissionMode)
      }
    })
  }
})
