/** `svc-code pack dev`: a server with the pack of this directory, which is swapped at every change of its files. */
import { basename, dirname, relative } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Pack } from '../../kernel/index.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import { readDeployment } from './deployment.ts'
import type { FlagValues } from './flags.ts'
import type { Io } from './io.ts'
import { forgetModule, loadPacks } from './load-pack.ts'
import { packsAt } from './pack-check.ts'
import { serve } from './serve.ts'

const quietMs = 100

export async function devPack(word: string, flags: FlagValues, io: Io): Promise<number> {
  const { file, packs } = await packsAt(word)
  const dir = dirname(file)
  const { watch } = await import('chokidar')
  let names = packs.map(pack => pack.name)
  return await serve({ ...flags, pack: [file], demo: true, port: flags.port ?? '0' }, io.env, io.out, (kernel: Kernel) => {
    let waiting = false
    let last: Promise<unknown> = Promise.resolve()
    const swap = async () => {
      await Promise.all([wait(quietMs), last])
      waiting = false
      const undo = forgetModule(file, dir)
      const { packs: next, failed } = await loadPacks([{ spec: file, from: dir }], [], { isolation: await readDeployment(flags, io.env) })
      if (failed.length > 0) {
        undo() // an edit of config.toml has the packs looked at again
        return io.out(`still the version before: ${failed.join('; ')}\n`)
      }
      const there = (pack: Pack) => names.includes(pack.name)
      const remove = names.filter(name => !next.some(pack => pack.name === name))
      await kernel.change({ remove, reload: next.filter(there), load: next.filter(pack => !there(pack)) })
      names = next.map(pack => pack.name)
      for (const name of remove) io.out(`${name} is gone\n`)
      for (const one of next) {
        const { state, meta } = kernel.features().find(({ name }) => name === one.name) ?? { state: 'gone', meta: {} }
        io.out(`${one.name} is ${state}${meta.error ? `: ${meta.error}` : ''}\n`)
      }
    }
    const ignored = (path: string) => /^(?:node_modules|\.git|dist)$/.test(basename(path))
    const watcher = watch(dir, { ignored, ignoreInitial: true }).on('all', (_event, path) => {
      if (waiting || /\.test\./.test(path) || !/\.(?:[cm]?[jt]s|json)$/.test(relative(dir, path))) return
      waiting = true
      last = swap().catch((error: unknown) => io.out(`${error instanceof Error ? error.message : String(error)}\n`))
    })
    watcher.on('ready', () => io.out(`watching ${dir}\n`))
    return () => void watcher.close()
  })
}
