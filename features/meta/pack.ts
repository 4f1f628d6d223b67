/** The server about itself: health, meta, connections and shutdown. */
import { definePack, KernelInfo, Type } from '../../kernel/index.ts'
import { Config, experimentalSection } from '../config/index.ts'
import { getMeta, healthz, listConnections, readStartPage, shutdown } from './contract.ts'
import { startPage } from './start-page.ts'

/** Part of the protocol, not of what is mounted: always true (contract 1, meta). */
const capabilities = { websocket: true, file_upload: true, fs_query: true, mcp: true, tasks: true, terminal: true } as const

const flagIds = ['wait_for', 'auto_session_title', 'secondary-model', 'subagent_fork', 'tool-select']

export default definePack({
  name: 'meta',
  description: 'Health, identity, features, connections, shutdown',
  area: 'Server',
  needs: { kernel: KernelInfo },
  optional: { config: Config },
  config: Type.Object({ web_title: Type.Optional(Type.String({ description: 'title for web pages' })) }),
  setup(ctx, { kernel, config }) {
    ctx.route(healthz, () => ({ ok: true as const }))
    ctx.route(readStartPage, startPage)
    ctx.route(getMeta, () => ({
      server_version: kernel.version,
      capabilities,
      server_id: kernel.server_id,
      started_at: kernel.started_at.toISOString(),
      open_in_apps: [],
      dangerous_bypass_auth: kernel.dangerous_bypass_auth,
      backend: 'v2' as const,
      experimental_flags: experimentalFlags(config(), process.env),
      features: kernel.features().map(feature => {
        const time = kernel.time(feature.name)
        const waiting = feature.meta.waiting_for
        return {
          ...feature,
          meta: { ...feature.meta, ...(waiting ? { waiting_for: [...waiting] } : {}), ...(time ? { time } : {}) }
        }
      }) as never, // readonly arrays of the kernel's own type; the schema is checked in tests
      ...(ctx.config.web_title === undefined ? {} : { web_title: ctx.config.web_title })
    }))
    ctx.route(listConnections, () => ({ connections: kernel.connections().map(one => ({ ...one })) }))
    if (kernel.loopback || kernel.allow_remote_shutdown) {
      ctx.route(shutdown, () => {
        ctx.operator.info({}, 'stopping: a client asked for it')
        kernel.shutdown()
        return { ok: true as const }
      })
    }
  }
})

/** Every known flag, off by default. Without the config pack the environment still counts (`SVC_CODE_EXPERIMENTAL_<ID>`). */
function experimentalFlags(config: Config | undefined, env: NodeJS.ProcessEnv): Record<string, boolean> {
  const set = config ? config.get(experimentalSection) : experimentalSection.overlay?.(env)
  return { ...Object.fromEntries(flagIds.map(id => [id, false])), ...(set as Record<string, boolean> | undefined) }
}
