/** Where a running server finds packs that come later: `[packs]` as it stands now, the default packs, and modules read again. */
import { join } from 'node:path'
import type { Pack } from '../../kernel/index.ts'
import { watchConfig } from '../config/index.ts'
import { defaultPacks, demoPacks, loadDefaultPack } from '../default-packs.ts'
import type { Deployment as Deployed, PackSource } from '../packs/index.ts'
import { type Deployment, readDeployment } from './deployment.ts'
import { deploymentPacks, deploymentWarnings, packOptions } from './deployment-packs.ts'
import type { FlagValues } from './flags.ts'
import type { Origin } from './pack-files.ts'
import { productVersion } from './version.ts'

export function packSource(flags: FlagValues, env: NodeJS.ProcessEnv, deployment: Deployment, packs: readonly Pack[]): PackSource {
  let loaded = deployment.load.map(one => one.spec)
  let last = deployment
  const known = new Map(packs.map(pack => [pack.name, pack]))
  /** Default packs are made anew at each look, and packs that cannot run: as long as they say the same they are the same. */
  const same = async (pack: Pack): Promise<Pack> => {
    const before = known.get(pack.name)
    if (before === undefined || before === pack) return pack
    const { originOf } = await import('./load-pack.ts')
    if (originOf(pack)?.spec !== originOf(before)?.spec) return pack
    const equal = originOf(pack) === undefined || (pack.broken !== undefined && pack.broken.message === before.broken?.message)
    return equal ? before : pack
  }
  const stateOf = (now: Deployment, all: readonly Pack[], gaveWay: readonly string[] = []): Deployed => ({
    packs: all,
    config: packOptions(now),
    disabled: now.disable,
    required: now.require,
    warnings: [...gaveWay, ...deploymentWarnings(now, all)]
  })
  const read = async (): Promise<Deployed> => {
    const now = await readDeployment(flags, env)
    const { forgetModule } = await import('./load-pack.ts')
    const specs = now.load.map(one => one.spec)
    for (const one of now.load) if (!loaded.includes(one.spec)) forgetModule(one.spec, one.from) // it may have been here before, and changed since
    loaded = specs
    last = now
    const gaveWay: string[] = []
    const found = await deploymentPacks({ ...now, demo: deployment.demo ?? false }, { warn: text => gaveWay.push(text) })
    const all = await Promise.all(found.map(same))
    for (const pack of all) known.set(pack.name, pack)
    return stateOf(now, all, gaveWay)
  }
  return {
    started: stateOf(deployment, packs),
    read,
    async find(name) {
      const pack = known.get(name)
      if (pack) return pack
      if (!Object.hasOwn({ ...defaultPacks, ...demoPacks }, name)) return undefined
      const loaded = { ...(await loadDefaultPack(name, { ...defaultPacks, ...demoPacks })), version: productVersion() }
      known.set(name, loaded)
      return loaded
    },
    async reread(name, runs) {
      const pack = known.get(name)
      const { forgetModule, loadPacks, originOf } = await import('./load-pack.ts')
      const origin = pack && originOf(pack)
      if (!origin) return pack
      const undo = forgetModule(origin.spec, origin.from)
      const { packs: found } = await loadPacks([origin], [], { isolation: last })
      // A file that fails to load has no name of its own: the pack that it was fails in its place.
      const next = found.find(one => one.name === name) ?? (await failing(name, found, origin))
      if (runs && next.broken) undo()
      else known.set(name, next)
      return next
    },
    watch: changed => watchConfig(join(deployment.home, 'config.toml'), changed)
  }
}

async function failing(name: string, found: readonly Pack[], origin: Origin): Promise<Pack> {
  const { failedPack } = await import('./load-pack.ts')
  const reason = found.find(pack => pack.broken)?.broken?.message
  return failedPack(name, new Error(reason ?? `its file brings no pack named '${name}' any more`), origin)
}
