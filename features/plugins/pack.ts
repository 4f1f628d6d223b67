/** Wires plugins: what is installed, what it brings to sessions, the marketplace, and their routes. */
import { definePack, KernelInfo, milliseconds, Type, underFirstAbort } from '../../kernel/index.ts'
import { watchConfig } from '../config/index.ts'
import { createUpstream } from '../llm/index.ts'
import { Peers, PeerTopics } from '../peers/index.ts'
import { Skills } from '../skills/index.ts'
import { tellCommands } from './command-events.ts'
import {
  disablePlugin,
  enablePlugin,
  installedStore,
  installPlugin,
  listPlugins,
  PluginMissing,
  pluginChanged,
  readMarketplace,
  removePlugin
} from './contract.ts'
import { contributeAgents, contributeHooks, contributePromptSections, contributeSessionStart, contributeSkills } from './contributions.ts'
import { catalogAddress, nameHosts } from './outbound.ts'
import { OwnRows } from './own-rows.ts'
import { type Plugin, PluginList, summaryOf } from './plugins.ts'
import { PluginServerChecks, Plugins } from './service.ts'
import { sweepStaging } from './staging.ts'

const marketplaceMs = 10_000
const topic = 'plugins'

export default definePack({
  name: 'plugins',
  description: 'Plugins: skills, commands, agents, hooks and MCP servers of others',
  area: 'Agent',
  needs: { info: KernelInfo },
  optional: { skills: Skills, peers: Peers },
  provides: [Plugins],
  errors: [PluginMissing],
  config: Type.Object({
    repo_hosts: Type.Array(Type.String(), {
      default: ['https://github.com'],
      description: 'origins of hosts whose addresses name repositories'
    }),
    download_ms: milliseconds({ minimum: 1, default: 300_000, description: 'limit of a download' }),
    silence_ms: milliseconds({ minimum: 1, default: 30_000, description: 'a download that brings nothing for so long is given up' })
  }),
  async setup(ctx, { info, skills, peers }) {
    const dir = `${ctx.home}/plugins`
    const upstream = createUpstream(process.env, { connect_ms: 10_000, silence_ms: ctx.config.silence_ms })
    ctx.own(() => upstream.close())
    const { repo_hosts: hosts, download_ms } = ctx.config
    const net = { upstream, userAgent: `svc-code/${info.version}` }
    const checks = ctx.collect(PluginServerChecks)
    const serverProblem = (config: Readonly<Record<string, unknown>>) =>
      checks
        .items()
        .map(each => each.problem(config))
        .find(problem => problem !== undefined)
    const installer = async () => {
      const { Installer } = await import('./installer.ts')
      return new Installer({ ...net, dir, hosts, download_ms, log: ctx.log, serverProblem, newId: ctx.newId })
    }
    const store = ctx.store(installedStore, { dir: 'plugins' })
    const emitChanged = ctx.event(pluginChanged)
    const list = new PluginList({ store, dir, installer, log: ctx.log, now: ctx.now, changed: () => peers()?.tell(topic, null) })
    // Hooks of plugins decide: they are there before anything runs.
    await list.refresh()
    const shownOf = (plugin: Plugin) => {
      const { id, version, enabled, state } = summaryOf(plugin)
      return { id, enabled, state, version }
    }
    ctx.background(() => sweepStaging(dir))
    ctx.provide(Plugins, {
      list: async () => (await list.refresh()).map(shownOf),
      install: async (source, signal) => shownOf(await list.install(source, signal)),
      mcpServers: () => list.mcpServers()
    })

    contributeHooks(ctx, list)
    contributeSkills(ctx, list)
    contributeAgents(ctx, list)
    contributePromptSections(ctx, list)
    contributeSessionStart(ctx, list, skills)
    tellCommands(ctx)
    nameHosts(ctx)

    // Told where the change has been taken in: what plugins bring is there when clients hear of it.
    ctx.own(list.onChange(() => emitChanged({})))
    const follow = () => ctx.background(() => list.refresh())
    // One that comes or goes may have changed something without a word.
    ctx.contribute(PeerTopics, { topic, told: follow, joined: follow, left: follow })
    // The only word of those that are not linked.
    ctx.background(async signal => {
      const undo = await watchConfig(`${dir}/installed.json`, () => void follow())
      if (signal.aborted) undo()
      else ctx.own(undo)
    })

    const ownRows = new OwnRows(ctx)
    ctx.route(listPlugins, async () => ({ plugins: (await list.all()).map(summaryOf) }))
    ctx.route(installPlugin, async ({ body, signal }) => summaryOf(await list.install(ownRows.fetchable(body.source), signal)))
    ctx.route(readMarketplace, async ({ signal }) => {
      const installed = (await list.refresh()).map(shownOf)
      const own = ownRows.all()
      const { marketplace } = await import('./marketplace.ts')
      const ports = { ...net, hosts, location: catalogAddress(), installed, own }
      return {
        entries: await underFirstAbort([signal, AbortSignal.timeout(marketplaceMs)], limited => marketplace({ ...ports, signal: limited }))
      }
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
