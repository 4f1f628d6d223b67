/** Wires the tools pack: registry, hooks around a call, the runner, and the tool list. */
import { definePack, KernelInfo, milliseconds, Type } from '../../kernel/index.ts'
import { Config, ConfigSections } from '../config/index.ts'
import { Sessions } from '../sessions/index.ts'
import { listTools, toolsSection } from './contract.ts'
import { configPolicy, OfferSlot, RefusalsSlot, Registry } from './registry.ts'
import { RepeatSlot } from './repeats.ts'
import { createRunner } from './runner.ts'
import { createToolHooks, ToolAuthority, ToolHooks, ToolRunner } from './service.ts'
import { ToolPolicies, ToolSets, Tools } from './tool.ts'

const noSession = { id: '', created_at: '' }

export default definePack({
  name: 'tools',
  description: 'Tool registry, hooks around a call, and the runner that executes the calls of a response',
  area: 'Tools',
  needs: { sessions: Sessions, kernel: KernelInfo },
  optional: { config: Config, authority: ToolAuthority },
  provides: [ToolHooks, ToolRunner],
  config: Type.Object({
    abandon_ms: milliseconds({ minimum: 0, default: 2000, description: 'how long an aborted call may take to end' }),
    call_limit_ms: milliseconds({
      minimum: 0,
      default: 14_400_000,
      description: 'how long a call may run whose tool has no limit of its own; 0: no limit'
    }),
    hook_limit_ms: milliseconds({
      minimum: 1,
      default: 660_000,
      description: 'how long a tool may take to understand a call, and each guard to judge it'
    })
  }),
  setup(ctx, { sessions, kernel, config, authority }) {
    const hooks = createToolHooks()
    const registry = new Registry({
      tools: ctx.collect(Tools),
      sets: ctx.collect(ToolSets),
      policies: ctx.collect(ToolPolicies),
      accounts: ctx,
      absence: kernel.absence
    })
    ctx.own(() => registry.close())

    ctx.slot(RepeatSlot)
    ctx.slot(OfferSlot)
    ctx.slot(RefusalsSlot)
    ctx.contribute(ConfigSections, toolsSection)
    ctx.contribute(
      ToolPolicies,
      configPolicy(() => config()?.get(toolsSection) ?? toolsSection.default)
    )
    ctx.provide(ToolHooks, hooks)
    ctx.provide(
      ToolRunner,
      createRunner({
        registry,
        hooks,
        authority,
        log: ctx.log,
        now: () => ctx.now(),
        newId: () => ctx.newId(),
        abandonMs: ctx.config.abandon_ms,
        callLimitMs: ctx.config.call_limit_ms,
        hookLimitMs: ctx.config.hook_limit_ms
      })
    )

    /** Id of the session that was created last. */
    const newest = async () => (await sessions.list()).reduce((a, b) => (b.created_at > a.created_at ? b : a), noSession).id
    ctx.tap(ctx.hooks.about, route => (route === listTools ? newest() : undefined))
    ctx.route(listTools, async ({ query: { session_id } }) => {
      const session = sessions.loaded(session_id ?? (await newest()))
      return { tools: session?.askMain(agent => registry.forClients(agent)) ?? [] }
    })
  }
})
