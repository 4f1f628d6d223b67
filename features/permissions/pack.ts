/** Wires permissions: state per agent, rules from the configuration, and the gate before every tool call. */
import { definePack, defineSlot, derived, problems } from '../../kernel/index.ts'
import { Agents, StepInjectors } from '../agent/index.ts'
import { Config, ConfigSections } from '../config/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import { Interactions } from '../interactions/index.ts'
import { type AgentHost, SessionDefaults } from '../sessions/index.ts'
import { ToolAuthority } from '../tools/index.ts'
import { AgentPermissions, later, permissionState } from './agent-permissions.ts'
import { type Approval, defaultModeSection, PermissionMode, Permissions, permissionSection } from './contract.ts'
import { permit, readable } from './gate.ts'
import { modeReminder, modeVariant } from './reminder.ts'
import { rulesOf } from './rules.ts'

export default definePack({
  name: 'permissions',
  description: 'Decides which tool calls run, which are denied and which are asked for',
  area: 'Agent',
  optional: { config: Config, histories: Histories, interactions: Interactions, agents: Agents },
  provides: [Permissions, ToolAuthority],
  setup(ctx, { config, histories, interactions, agents }) {
    ctx.contribute(ConfigSections, permissionSection)
    ctx.contribute(ConfigSections, defaultModeSection)
    ctx.contribute(HistoryStates, permissionState)

    const open = async (agent: AgentHost) =>
      AgentPermissions.open(await histories()?.of(agent), await permissions.defaultMode(agent.session))
    const slot = defineSlot('permissions', open, histories)
    ctx.slot(slot)

    const parent = (agent: AgentHost) => {
      const id = agent.record.parent_agent_id
      return id === undefined ? undefined : agent.session.agent(id)
    }

    /** Of those that called each other, down to this one: what was approved for it counts for all. */
    const first = (agent: AgentHost): AgentHost => {
      const caller = parent(agent)
      return caller ? first(caller) : agent
    }

    const mainOf = async ({ session }: AgentHost) => await session.agent('main')?.get(slot)

    /** At once where it is known. */
    const modeOf = (agent: AgentHost): PermissionMode | Promise<PermissionMode> =>
      agent.whenOpen(slot, ({ own, fallback }) => {
        const caller = parent(agent)
        if (!own && caller) return modeOf(caller)
        const main = agent.session.agent('main')
        return main ? main.whenOpen(slot, its => later(own, its.own)?.mode ?? fallback) : (own?.mode ?? fallback)
      })

    const configured = () => config()?.get(defaultModeSection) ?? defaultModeSection.default
    ctx.contribute(SessionDefaults, { name: 'permission_mode', value: configured })

    const permissions: Permissions = {
      async defaultMode({ state }) {
        const kept = state.defaults?.permission_mode
        return problems(PermissionMode, kept).length === 0 ? (kept as PermissionMode) : configured()
      },
      mode: async agent => modeOf(agent),
      async setMode(agent, mode) {
        const its = await agent.get(slot)
        const atWork = agent.session.agents().filter(host => agents()?.isOpen(host))
        const before = await Promise.all(atWork.map(host => permissions.mode(host)))
        const now = ctx.now().getTime()
        if (agent.record.type === 'main') await its.setForAll(mode, now)
        else await its.setForOne(mode, now, await mainOf(agent))
        for (const [at, host] of atWork.entries()) {
          const permission = await permissions.mode(host)
          if (permission !== before[at]) (await agents()?.of(host))?.announce({ permission })
        }
      },
      async remember(agent, approval) {
        await (await first(agent).get(slot)).remember(approval)
      }
    }
    ctx.provide(Permissions, permissions)

    ctx.contribute(StepInjectors, {
      variant: modeVariant,
      inject({ agent }, history) {
        const say = (mode: PermissionMode) => modeReminder(mode, history.reminder(modeVariant)?.mode)
        const mode = modeOf(agent)
        return mode instanceof Promise ? mode.then(say) : say(mode)
      }
    })

    /** An agent may do what was approved for itself or for those that called it. */
    const remembered = async (agent: AgentHost | undefined): Promise<readonly Approval[]> =>
      agent ? [...(await agent.get(slot)).approvals, ...(await remembered(parent(agent)))] : []

    /** The file has been readable at some time, so its last good rules count. */
    let read = false
    const rules = derived(
      () => [config(), config()?.revision],
      () => {
        const settings = config()
        const found = rulesOf(settings?.get(permissionSection) ?? permissionSection.default)
        if (!settings) return { rules: found, unsure: false }
        const troubles = settings.diagnostics().map(({ domain }) => domain)
        read ||= !troubles.includes(undefined) // one without a domain means the whole file
        return { rules: found, unsure: !read || troubles.includes(permissionSection.name) }
      }
    )
    ctx.own(rules.forget)
    // Looks at the file now: one that breaks before the first call has had its say.
    ctx.background(async () => rules())

    const ports = { permissions, remembered, rules, interactions, log: ctx.log, home: ctx.home }
    ctx.provide(ToolAuthority, {
      permit: context => permit(context, ports),
      readable: async ({ cwd }) => readable(rules().rules, cwd)
    })
  }
})
