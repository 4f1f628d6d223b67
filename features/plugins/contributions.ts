/** What the plugins that are switched on bring to sessions: hooks, skills, commands, agents, and what they say to the model. */
import type { PackContext } from '../../kernel/index.ts'
import { AgentProfileSources, PromptBlocks, StepInjectors } from '../agent/index.ts'
import { SkillSources, type Skills } from '../skills/index.ts'
import { HookSources } from '../user-hooks/index.ts'
import type { PluginList } from './plugins.ts'
import { sections, sessionStart } from './prompt.ts'

type Contributing = Pick<PackContext, 'contribute'>

/** Contributed anew with every change: whoever collects them hears of that. */
export function contributeHooks(ctx: Contributing & Pick<PackContext, 'home' | 'own'>, list: PluginList): void {
  const contribute = () => {
    const rules = list.active.flatMap(({ record, contents }) =>
      contents.hooks.map(rule => ({ ...rule, env: { SVC_CODE_HOME: ctx.home, SVC_PLUGIN_ROOT: record.root } }))
    )
    return ctx.contribute(HookSources, { rules: () => rules })
  }
  let withdraw = contribute()
  ctx.own(
    list.onChange(() => {
      const before = withdraw
      withdraw = contribute() // first: no hook is away for a moment
      before()
    })
  )
}

/** Skills, and the commands that users call. */
export function contributeSkills(ctx: Contributing, list: PluginList): void {
  ctx.contribute(SkillSources, {
    name: 'plugins',
    refresh: () => list.refresh(),
    places: () =>
      list.active.flatMap(({ contents: { skills: places, skillInstructions } }) =>
        places.map(place => ({ ...place, instructions: skillInstructions }))
      ),
    commands: () =>
      list.active.flatMap(({ record: { id }, contents }) =>
        contents.commands.map(({ name, path }) => ({ plugin_id: id, name: name.slice(id.length + 1), path }))
      )
  })
}

export function contributeAgents(ctx: Contributing, list: PluginList): void {
  ctx.contribute(AgentProfileSources, { name: 'plugins', profiles: () => list.active.flatMap(({ profiles }) => profiles) })
}

export function contributePromptSections(ctx: Contributing, list: PluginList): void {
  ctx.contribute(PromptBlocks, {
    name: 'plugins',
    order: 430,
    // Asked when a turn begins: what another process installed counts from then on.
    basis: async () => {
      await list.refresh()
      return list.active.map(({ record }) => `${record.id} ${record.updatedAt}`).join('\n')
    },
    render: () => sections(list.active)
  })
}

/** Skills with which a session begins, told once as a reminder to the main agent. */
export function contributeSessionStart(ctx: Contributing, list: PluginList, skills: () => Skills | undefined): void {
  const variant = 'plugin_session_start'
  ctx.contribute(StepInjectors, {
    variant,
    inject({ agent }, history) {
      const there = skills()
      if (!there || agent.id !== 'main' || history.reminder(variant) || !list.active.some(({ contents }) => contents.sessionStart)) {
        return undefined
      }
      return sessionStart(list.active, there, agent.session).then(found => found && { text: found.text, facts: { plugins: found.plugins } })
    }
  })
}
