/** The packs of this server, seen and switched while it runs. */
import { AppError, definePack, PackControl } from '../../kernel/index.ts'
import { listPacks, loadPack, PackHeld, type PackItem, PackMissing, refreshPacks, reloadPack, unloadPack } from './contract.ts'
import { Deployed } from './deployed.ts'
import { disabledItem, itemOf } from './item.ts'
import { PackSource } from './source.ts'

export default definePack({
  name: 'packs',
  description: 'Packs seen, loaded, unloaded and swapped while the server runs',
  area: 'Server',
  needs: { control: PackControl },
  optional: { sourceThere: PackSource },
  async setup(ctx, { control, sourceThere }) {
    const source = sourceThere() // without one the packs that are there can be switched
    const deployed = new Deployed(control, source, ctx.name)
    const report = (name: string) => control.list().find(one => one.name === name)

    async function items(): Promise<PackItem[]> {
      const there = control.list().map(itemOf)
      const absent = deployed.disabled.filter(name => !there.some(item => item.name === name))
      return [...there, ...(await Promise.all(absent.map(async name => disabledItem(name, await source?.find(name)))))]
    }
    function item(name: string): PackItem {
      const found = report(name)
      if (!found) throw new AppError(PackMissing, { message: `no pack '${name}'` })
      return itemOf(found)
    }
    /** Throws PackMissing or PackHeld. */
    function assertFree(name: string): void {
      item(name)
      if (name === ctx.name) throw new AppError(PackHeld, { message: `pack '${name}' answers this request itself` })
    }

    ctx.route(listPacks, async () => ({ items: await items() }))
    ctx.route(loadPack, async ({ params: { name } }) => {
      const pack = report(name) ? name : await source?.find(name)
      if (pack === undefined) throw new AppError(PackMissing, { message: `no pack '${name}'` })
      await control.change({ load: [pack] })
      return item(name)
    })
    ctx.route(unloadPack, async ({ params: { name } }) => {
      assertFree(name)
      if (report(name)?.required) throw new AppError(PackHeld, { message: `pack '${name}' is required by this server` })
      await control.change({ unload: [name] })
      return item(name)
    })
    ctx.route(reloadPack, async ({ params: { name } }) => {
      assertFree(name)
      await deployed.reload(name)
      return item(name)
    })
    ctx.route(refreshPacks, async () => {
      const { loaded, unloaded, reloaded, warnings } = await deployed.refresh()
      return { loaded, unloaded, reloaded, warnings: [...warnings], items: await items() }
    })

    const follow = async () => {
      try {
        const { loaded, unloaded, reloaded, warnings } = await deployed.refresh()
        for (const text of warnings) ctx.operator.warn({}, text)
        const said = [...loaded.map(name => `+${name}`), ...unloaded.map(name => `-${name}`), ...reloaded.map(name => `~${name}`)]
        if (said.length > 0) ctx.operator.info({}, `packs changed with config.toml: ${said.join(' ')}`)
        for (const name of [...loaded, ...reloaded]) {
          const error = report(name)?.meta.error
          if (error !== undefined) ctx.operator.warn({ pack: name }, `${name} failed: ${error}`)
        }
      } catch (error) {
        ctx.operator.warn({}, `packs stay as they are: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    if (source) ctx.own(await source.watch(() => void follow()))
  }
})
