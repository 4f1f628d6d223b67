/** Wires the config pack: the service over `<home>/config.toml`, its two routes, the change event and the watcher. */
import { AppError, definePack, invalid, KernelInfo, mostDetails, type Static, yieldToLoop } from '../../kernel/index.ts'
import { type ConfigObject, configWarning } from './contract.ts'
import { ConfigFile } from './file.ts'
import { LiveSpecs } from './live-specs.ts'
import { applyBody, lostSecrets, readBody, toSender } from './merge-patch.ts'
import { ownSections } from './sections.ts'
import { Config, ConfigSections } from './service.ts'
import { Settings } from './settings.ts'
import { standIns } from './stand-ins.ts'
import type { Table } from './tables.ts'
import { ConfigView } from './view.ts'
import { watchConfig } from './watch.ts'

export default definePack({
  name: 'config',
  description: "The user's configuration file",
  area: 'Server',
  needs: { info: KernelInfo },
  provides: [Config],
  async setup(ctx, { info }) {
    const { env } = process
    const contributed = ctx.collect(ConfigSections)
    const file = new ConfigFile(ctx.home)
    const emitWarning = ctx.event(configWarning)
    /** Whose sections there were, by their names. */
    const owners = new Map<string, string>()
    let known = true // all that there are now
    const remember = () => {
      if (known) return
      known = true
      for (const { pack, item } of contributed.entries()) owners.set(item.name, pack).set(item.alias ?? item.name, pack)
    }
    const sections = () => {
      remember()
      return contributed.items()
    }
    const settings = new Settings({
      file,
      env,
      // Whoever runs the server sees what of the file is not used as written.
      log: {
        warn: (facts: object, text: string) => ctx.operator.warn(facts, text),
        error: (facts: object, text: string) => ctx.log.error(facts, text)
      },
      warned: warnings => emitWarning({ warnings: warnings.slice(0, mostDetails) }),
      repaired: () => ctx.operator.info({}, 'config.toml is used again'),
      sections,
      returns: name => info.absence(owners.get(name) ?? '') !== undefined,
      standIns,
      prepare: () => view.prepare()
    })
    ctx.tap(ctx.hooks.started, () => settings.judgeNames())
    ctx.tap(ctx.hooks.stopping, () => settings.leaveNames())
    const view = new ConfigView(settings)
    const specs = new LiveSpecs(() => settings.sections())
    ctx.tap(ctx.hooks.packState, () => queueMicrotask(() => settings.packsChanged())) // when what an active one brings is there
    contributed.onChange(() => {
      known = false
      settings.sectionsChanged()
      specs.changed()
    })
    for (const section of ownSections) ctx.contribute(ConfigSections, section)
    await settings.ready()
    ctx.provide(Config, settings)

    const answer = async () => {
      const config = await view.prepare()
      await yieldToLoop() // a large answer is written in a share of its own
      return config as Static<typeof ConfigObject>
    }
    const emitChanged = ctx.event(specs.change)
    const mode = settings.section('default_permission_mode')
    let yolo = mode !== undefined && settings.get(mode) === 'yolo'
    ctx.own(
      settings.onChange(({ fields }) => {
        const config = view.config as Static<typeof ConfigObject>
        const changed = new Set(fields)
        if (config.yolo !== yolo) changed.add('yolo') // follows from another key
        yolo = config.yolo
        emitChanged({ changed_fields: [...changed], changedFields: [...changed], config })
      })
    )
    const refresh = () => settings.reload().catch((err: unknown) => ctx.log.warn({ err }, 'config.toml could not be read'))

    ctx.route(specs.read, async () => {
      await refresh()
      return answer()
    })
    ctx.route(specs.patch, async ({ body }) => {
      await yieldToLoop() // a large body was parsed just now
      const patch = readBody(body as Table, settings)
      if (patch.fields.length > 0 || patch.faults.length > 0) {
        await settings
          .save(table => applyBody(table, patch, settings, view.config, env), {
            announce: patch.fields,
            faults: (before, next) => [...patch.faults, ...lostSecrets(before, next)]
          })
          .catch((error: unknown) => {
            if (!AppError.is(error) || !Array.isArray(error.details)) throw error
            throw invalid(
              error.details.map(detail => toSender(body, detail)),
              error
            )
          })
      } else await refresh() // it answers what the file holds now, as every patch does
      return answer()
    })

    ctx.background(async signal => {
      const undo = await watchConfig(file.path, () => void refresh())
      if (signal.aborted) return undo()
      ctx.own(undo)
      await refresh() // what was written since the file was read, before anybody watched it
    })
  }
})
