/** Wires capabilities: what packs bring, how much of it is there, installs, and their rows in the marketplace. */
import { AppError, definePack, InternalError, KernelInfo, milliseconds, Type } from '../../kernel/index.ts'
import { OutboundHosts } from '../llm/index.ts'
import { MarketplaceRows, Plugins } from '../plugins/index.ts'
import { Shell } from '../tools-shell/index.ts'
import { computerUse } from './computer-use.ts'
import {
  CapabilityMissing,
  CapabilityUnsupported,
  capabilityChanged,
  installCapability,
  listCapabilities,
  readCapability
} from './contract.ts'
import { Installs } from './installs.ts'
import { Capabilities, type Capability } from './service.ts'
import { ComputerUseSource, WebBridgeSource } from './sources.ts'
import { inTime, messageOf, shown, undetected } from './status.ts'
import { webBridge } from './web-bridge.ts'

export default definePack({
  name: 'capabilities',
  description: 'Computer use and browser bridge: how much of them is there, and installing them',
  area: 'Agent',
  needs: { info: KernelInfo },
  optional: { plugins: Plugins, shell: Shell },
  config: Type.Object({
    'svc-cu': Type.Optional(ComputerUseSource),
    'svc-webbridge': Type.Optional(WebBridgeSource),
    step_ms: milliseconds({ minimum: 1, maximum: 60_000, default: 3000, description: 'limit of a look at one step' }),
    detect_ms: milliseconds({ minimum: 1, maximum: 120_000, default: 10_000, description: 'limit of a look at a capability' }),
    silence_ms: milliseconds({ minimum: 1, default: 30_000, description: 'a download that brings nothing for so long is given up' })
  }),
  setup(ctx, { info, plugins, shell }) {
    const { step_ms, detect_ms, silence_ms } = ctx.config
    const dir = `${ctx.home}/capabilities`
    const bridgeSource = ctx.config['svc-webbridge'] ?? {}
    const computerSource = ctx.config['svc-cu'] ?? {}
    const ports = {
      ...{ plugins, shell, home: ctx.home, step_ms, silence_ms },
      userAgent: `svc-code/${info.version}`,
      env: process.env,
      platform: process.platform,
      arch: process.arch
    }
    ctx.contribute(Capabilities, computerUse({ ...ports, dir: `${dir}/svc-cu`, source: computerSource }))
    ctx.contribute(Capabilities, webBridge({ ...ports, dir: `${dir}/svc-webbridge`, source: bridgeSource }))

    const there = ctx.collect(Capabilities)
    const all = () => there.items().filter((one, at, items) => items.findIndex(({ id }) => id === one.id) === at)
    const found = (id: string): Capability => {
      const capability = all().find(one => one.id === id)
      if (!capability) throw new AppError(CapabilityMissing, { message: `there is no capability ${id}` })
      return capability
    }
    const detect = (capability: Capability, signal: AbortSignal) => inTime(inner => capability.detect(inner), detect_ms, signal)
    const emit = ctx.event(capabilityChanged)
    const installs = new Installs({
      ...{ dir, detect },
      log: ctx.log,
      background: ctx.background,
      tell: (capability_id, install) => emit({ capability_id, install })
    })
    const statusOf = async (capability: Capability, signal: AbortSignal) => {
      const seen = capability.supported ? await detect(capability, signal) : undefined
      return shown(capability, seen, capability.supported ? await installs.stateOf(capability) : { running: false })
    }

    ctx.route(listCapabilities, async ({ signal }) => ({
      capabilities: await Promise.all(
        all().map(one =>
          statusOf(one, signal).catch(async (error: unknown) => {
            signal.throwIfAborted()
            ctx.log.warn({ err: error, capability: one.id }, 'a capability could not be looked at')
            return undetected(one, error, await installs.stateOf(one))
          })
        )
      )
    }))
    ctx.route(readCapability, async ({ params, signal }) => {
      const capability = found(params.capability_id)
      return await statusOf(capability, signal).catch((cause: unknown) => {
        signal.throwIfAborted()
        throw new AppError(InternalError, { message: `${capability.id} could not be looked at: ${messageOf(cause)}`, cause })
      })
    })
    ctx.route(installCapability, async ({ params, signal }) => {
      const capability = found(params.capability_id)
      if (!capability.supported) throw new AppError(CapabilityUnsupported)
      const install = await installs.begin(capability)
      // The install goes on whatever a look at what is there says.
      return await detect(capability, signal).then(
        seen => shown(capability, seen, install),
        error => undetected(capability, error, install)
      )
    })

    ctx.contribute(MarketplaceRows, {
      rows: () =>
        all().map(({ id, pluginId, pluginSource, displayName, description, supported }) => ({
          ...{ id, capabilityId: id, pluginId, pluginSource, displayName, description, supported }
        }))
    })
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () =>
        [computerSource, bridgeSource].flatMap(({ program }) =>
          program ? [{ url: program.url, why: 'programs of a capability', when: 'a client installs it' }] : []
        )
    })
  }
})
