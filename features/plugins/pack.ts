/** Wires plugins: what is installed, what it brings to sessions, the marketplace, and their routes. */
import { askEach, definePack, invalid, KernelInfo, Type } from '../../kernel/index.ts'
import { type AgentProfile, AgentProfileSources, PromptBlocks, StepInjectors } from '../agent/index.ts'
import { coreRecord, RecordEvents, recordTypes } from '../history/index.ts'
import { createUpstream, OutboundHosts } from '../llm/index.ts'
import { SkillSources, Skills } from '../skills/index.ts'
import { readProfiles } from '../subagents/index.ts'
import { HookSources } from '../user-hooks/index.ts'
import {
  commandActivated,
  disablePlugin,
  enablePlugin,
  installedStore,
  installPlugin,
  listPlugins,
  PluginMissing,
  readMarketplace,
  removePlugin
} from './contract.ts'
import { type Plugin, PluginList, summaryOf } from './plugins.ts'
import { sections, sessionStart } from './prompt.ts'
import { MarketplaceRows, Plugins } from './service.ts'

const marketplaceMs = 10_000
/** Of the reminder that carries the skills of the session's begin. */
const startVariant = 'plugin_session_start'

export default definePack({
  name: 'plugins',
  description: 'Plugins: skills, commands, agents, hooks and MCP servers of others',
  area: 'Agent',
  needs: { info: KernelInfo },
  optional: { skills: Skills },
  provides: [Plugins],
  errors: [PluginMissing],
  config: Type.Object({
    repo_hosts: Type.Array(Type.String(), {
      default: ['https://github.com'],
      description: 'origins of hosts whose addresses name repositories'
    }),
    download_ms: Type.Integer({ minimum: 1, default: 300_000, description: 'limit of a download' }),
    silence_ms: Type.Integer({ minimum: 1, default: 30_000, description: 'a download that brings nothing for so long is given up' })
  }),
  async setup(ctx, { info, skills }) {
    const dir = `${ctx.home}/plugins`
    const upstream = createUpstream(process.env, { connect_ms: 10_000, silence_ms: ctx.config.silence_ms })
    ctx.own(() => upstream.close())
    const { repo_hosts: hosts, download_ms } = ctx.config
    const net = { upstream, userAgent: `svc-code/${info.version}` }
    const installer = async () => {
      const { Installer } = await import('./installer.ts')
      return new Installer({ ...net, dir, hosts, download_ms, newId: ctx.newId })
    }
    const store = ctx.store(installedStore, { dir: 'plugins' })
    const list = new PluginList({ store, dir, installer, log: ctx.log, now: ctx.now })
    // Hooks of plugins decide: they are there before anything runs.
    await list.refresh()
    const shownOf = (plugin: Plugin) => {
      const { id, version, enabled, state } = summaryOf(plugin)
      return { id, enabled, state, version }
    }
    ctx.provide(Plugins, {
      list: async () => (await list.refresh()).map(shownOf),
      install: async (source, signal) => shownOf(await list.install(source, signal)),
      mcpServers: () => list.mcpServers(),
      onChange: listener => list.onChange(listener)
    })

    ctx.contribute(HookSources, {
      rules: () =>
        list.active.flatMap(({ record, contents }) =>
          contents.hooks.map(rule => ({ ...rule, env: { SVC_CODE_HOME: ctx.home, SVC_PLUGIN_ROOT: record.root } }))
        ),
      onChange: listener => list.onChange(listener)
    })
    ctx.contribute(SkillSources, {
      name: 'plugins',
      places: () =>
        list.active.flatMap(({ contents: { skills: places, skillInstructions } }) =>
          places.map(place => ({ ...place, instructions: skillInstructions }))
        ),
      commands: () =>
        list.active.flatMap(({ record: { id }, contents }) =>
          contents.commands.map(({ name, path }) => ({ plugin_id: id, name: name.slice(id.length + 1), path }))
        )
    })

    let profiles: readonly AgentProfile[] = []
    const readAgents = async () => {
      profiles = await readProfiles(
        list.active.flatMap(({ contents }) => contents.agents),
        ctx.log
      )
    }
    ctx.own(list.onChange(() => ctx.background(readAgents)))
    if (list.active.length > 0) await readAgents()
    ctx.contribute(AgentProfileSources, { name: 'plugins', profiles: () => profiles })

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
    ctx.contribute(StepInjectors, {
      variant: startVariant,
      inject({ agent }, history) {
        const there = skills()
        if (!there || agent.id !== 'main' || history.reminder(startVariant) || !list.active.some(({ contents }) => contents.sessionStart)) {
          return undefined
        }
        return sessionStart(list.active, there, agent.session).then(
          found => found && { text: found.text, facts: { plugins: found.plugins } }
        )
      }
    })

    const emit = ctx.event(commandActivated)
    ctx.contribute(RecordEvents, {
      records: recordTypes('prompt.accepted'),
      events(given) {
        const record = coreRecord(given)
        if (record?.type !== 'prompt.accepted' || record.origin?.kind !== 'plugin_command') return []
        const { kind: _kind, ...payload } = record.origin
        return [{ type: commandActivated.type, payload, at: new Date(record.time ?? 0) }]
      },
      // Only what `events` made comes back.
      tell: (agent, { payload, at }) =>
        emit(payload as Parameters<typeof emit>[0], { session_id: agent.session.id, subject: agent.id, time: at })
    })

    const rows = ctx.collect(MarketplaceRows)
    const ownRows = () =>
      askEach(
        rows.entries(),
        ctx,
        () => 'rows of the marketplace',
        each => each.rows()
      )
    const location = () => process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL?.trim() || undefined
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () => {
        const url = location()
        return [
          ...(url !== undefined && /^https?:/.test(url) ? [{ url, why: 'the plugin marketplace', when: 'a client asks for it' }] : []),
          { why: 'archives of plugins', when: 'a plugin is installed from an address' }
        ]
      }
    })

    ctx.route(listPlugins, async () => ({ plugins: (await list.refresh()).map(summaryOf) }))
    /** A source of the marketplace, as it can be fetched. */
    const fetchable = (source: string) => {
      const [, capability] = /^capability:(.*)$/.exec(source.trim()) ?? []
      if (capability === undefined) return source
      const row = ownRows().find(each => each.capabilityId === capability && each.supported)
      if (row?.pluginSource !== undefined) return row.pluginSource
      const message = row ? `nothing is configured to install ${capability} from` : `this server has no capability ${capability}`
      throw invalid([{ path: 'body.source', message }])
    }
    ctx.route(installPlugin, async ({ body, signal }) => summaryOf(await list.install(fetchable(body.source), signal)))
    ctx.route(readMarketplace, async ({ signal }) => {
      const installed = (await list.refresh()).map(shownOf)
      const limited = AbortSignal.any([signal, AbortSignal.timeout(marketplaceMs)])
      const own = ownRows()
      const { marketplace } = await import('./marketplace.ts')
      return { entries: await marketplace({ ...net, signal: limited, hosts, location: location(), installed, own }) }
    })
    const change = (route: typeof enablePlugin, work: (id: string) => Promise<void>) =>
      ctx.route(route, async ({ params }) => {
        await work(params.plugin_id)
        return { ok: true }
      })
    change(enablePlugin, id => list.setEnabled(id, true))
    change(disablePlugin, id => list.setEnabled(id, false))
    change(removePlugin, id => list.remove(id))
  }
})
