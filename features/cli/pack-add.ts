/** `svc-code pack add|remove`: what `[packs] load` of config.toml names; a running server follows at once. */
import { existsSync, statSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { unwrap } from '../../client/index.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { Config } from '../config/index.ts'
import { defaultPacks, loadDefaultPack } from '../default-packs.ts'
import type { PackItem } from '../packs/index.ts'
import { CommandError } from './command-error.ts'
import { type Deployment, homeOf, readDeployment } from './deployment.ts'
import type { FlagValues } from './flags.ts'
import type { Io } from './io.ts'
import { forgetModule, loadPacks, originOf } from './load-pack.ts'
import { entryOf, fileOf, type Origin, sourceOf } from './pack-files.ts'
import { install, oneAtATime, settle, uninstall } from './pack-modules.ts'
import { rowOf } from './pack-rows.ts'
import { runningServer } from './servers.ts'

/**
 * A path of a file or directory, a tarball, or a package that npm knows. What is listed already, however it is spelled, is read anew. Exit
 * code 1, and nothing changed, when its pack fails or another one of its name is listed.
 */
export async function addPack(word: string, flags: FlagValues, io: Io): Promise<number> {
  const home = homeOf(flags, io.env)
  const path = resolve(word)
  const tarball = /\.(?:tgz|tar\.gz)$/.test(word)
  if ((word.startsWith('.') || word.startsWith('/') || tarball) && !existsSync(path)) throw new CommandError(`there is no ${path}`)
  await readDeployment({ home }, io.env) // a fault of the file ends this before anything is made
  return oneAtATime(home, async () => {
    if (existsSync(path) && !tarball) {
      warnOfOldBuild(path, io)
      return list(home, path, flags, io)
    }
    const { name, undo } = await install(home, tarball ? path : word, io)
    try {
      return await list(home, name, flags, io, undo)
    } finally {
      await settle(home)
    }
  })
}

/** What is loaded of a directory is what was built, while `pack dev` and `pack test` take the source: an old build would puzzle its author. */
function warnOfOldBuild(path: string, { err }: Io): void {
  if (!statSync(path).isDirectory()) return
  const [built, source] = [entryOf(path), sourceOf(path)]
  if (built === source || statSync(built).mtimeMs >= statSync(source).mtimeMs) return
  err(`warning: ${relative(path, built)} is loaded, which is older than ${relative(path, source)}: npm run build makes it anew\n`)
}

/** Writes a path or package into `[packs] load`. `undo` takes back what was installed for it. */
async function list(home: string, word: string, flags: FlagValues, io: Io, undo?: () => Promise<void>): Promise<number> {
  const deployment = await readDeployment({ home }, io.env)
  const spec = listedAs({ spec: word, from: home }, deployment.load) ?? word
  const listed = deployment.load.some(one => one.spec === spec)
  const refuse = async (text: string): Promise<never> => {
    await undo?.()
    throw new CommandError(text)
  }
  forgetModule(spec, home)
  const inside = flags['in-process'] ?? false
  const { isolation, isolate } = deployment
  const { packs, failed } = await loadPacks([{ spec, from: home }], Object.keys(defaultPacks), {
    isolation: { isolate: !inside, isolation }
  })
  if (failed.length > 0) await refuse(`not added: ${failed.join('; ')}`)
  const names = packs.map(pack => pack.name)
  const rest = deployment.load.filter(one => one.spec !== spec)
  const others = await loadPacks(rest, [], { isolation: deployment })
  const twin = others.packs.find(pack => names.includes(pack.name))
  if (twin) {
    const other = originOf(twin)?.spec
    await refuse(
      `not added: a pack named '${twin.name}' is listed already, as ${other}; to have this one in its place: svc-code pack remove ${twin.name}`
    )
  }
  await editPacks(home, table => {
    if (!table.load?.includes(spec)) table.load = [...(table.load ?? []), spec]
    isolated(table, names, inside ? [] : names)
  })
  const did = listed ? `listed already as ${spec}:` : 'added'
  const { items, warnings } = await refresh(home, listed ? names : [])
  for (const text of warnings) io.err(`warning: ${text}\n`)
  if (items === undefined) {
    io.out(`${did} ${names.join(', ')}; no server runs on ${home}, the next one loads it\n`)
    return 0
  }
  const rows = items.filter(item => names.includes(item.name)).map(rowOf)
  const bad = rows.filter(row => row.state === 'Failed')
  if (bad.length > 0) {
    await editPacks(home, table => {
      if (!listed) table.load = table.load?.filter(one => one !== spec)
      isolated(table, names, typeof isolate === 'object' ? names.filter(name => isolate.includes(name)) : [])
    })
    await undo?.()
    // What it was refused for is what there is to tell: without it the configuration may have a fault of its own.
    await refresh(home, listed ? names : []).catch((error: Error) => io.err(`warning: ${error.message}\n`))
    const why = bad.map(row => `${row.name}: ${row.why}`).join('; ')
    const hint = !inside && /process of its own|another process/.test(why) ? ' (--in-process runs it in that of the server)' : ''
    const state = listed ? (undo ? 'still the version before: ' : '') : 'not added: '
    throw new CommandError(`${state}${why}${hint}`)
  }
  for (const row of rows) io.out(`${did} ${row.name}, ${row.state}${row.why === '' ? '' : `: ${row.why}`}\n`)
  return 0
}

/** By the name of the pack, or as it was added. */
export async function removePack(word: string, flags: FlagValues, io: Io): Promise<number> {
  const home = homeOf(flags, io.env)
  await readDeployment({ home }, io.env)
  return oneAtATime(home, () => unlist(home, word, io))
}

async function unlist(home: string, word: string, io: Io): Promise<number> {
  const deployment = await readDeployment({ home }, io.env)
  const { load } = deployment
  const { packs, failed } = await loadPacks(load, [], { isolation: deployment })
  const spelled =
    load.find(one => one.spec === word || one.spec === resolve(word))?.spec ?? listedAs({ spec: resolve(word), from: home }, load)
  const named = spelled === undefined ? packs.flatMap((one: Pack) => (one.name === word ? (originOf(one)?.spec ?? []) : [])) : [spelled]
  const files = load.filter(one => named.includes(one.spec)).flatMap(one => fileOf(one) ?? [])
  const specs = load.map(one => one.spec).filter((spec, at) => named.includes(spec) || files.includes(fileOf(load[at] as Origin) ?? ''))
  if (specs.length === 0) throw new CommandError(`[packs] load of config.toml names no pack '${word}'`)
  const gone = packs.filter(pack => specs.includes(originOf(pack)?.spec ?? '')).map(pack => pack.name)
  const held = gone.flatMap(name => holders(name, deployment))
  if (held.length > 0) throw new CommandError(`not removed: without it no server starts; first take ${held.join(', ')} out of config.toml`)
  const stay = packs.map(pack => pack.name).filter(name => !gone.includes(name))
  await editPacks(home, table => {
    table.load = table.load?.filter(spec => !specs.includes(spec))
    const isGone = (name: string) => name === word || (failed.length === 0 && !stay.includes(name))
    if (typeof table.isolate === 'object') table.isolate = table.isolate.filter(name => !isGone(name))
  })
  const { items } = await refresh(home, [])
  const still = items?.some(item => gone.includes(item.name))
  for (const spec of specs) await uninstall(home, spec, io)
  const server =
    items === undefined ? '' : still ? '; the running server has it from its command line' : '; the running server goes on without it'
  io.out(`removed ${word}${server}\n`)
  return 0
}

/** Where else `[packs]` asks for a pack of this name. */
function holders(name: string, { require, replace }: Deployment): string[] {
  const services = Object.keys(replace).filter(id => replace[id] === name)
  return [...(require.includes(name) ? [`'${name}' of [packs] require`] : []), ...services.map(id => `'${id}' of [packs.replace]`)]
}

/** How a file is named in the list; undefined when it is not in it. */
function listedAs(origin: Origin, load: readonly Origin[]): string | undefined {
  const file = fileOf(origin)
  return file === undefined ? undefined : load.find(one => fileOf(one) === file)?.spec
}

/** Has the running server take in `[packs]` now, and these packs read anew; `items` undefined when none runs. */
async function refresh(home: string, anew: readonly string[]): Promise<{ items?: PackItem[]; warnings: string[] }> {
  const server = await runningServer(home)
  if (!server) return { warnings: [] }
  const { rest } = server.client
  try {
    if (anew.length > 0) await unwrap(rest.POST('/api/v1/packs:refresh'))
    for (const name of anew) await unwrap(rest.POST('/api/v1/packs/{name}:reload', { params: { path: { name } } }))
    const { items, warnings } = await unwrap(rest.POST('/api/v1/packs:refresh'))
    return { items: items as PackItem[], warnings }
  } catch (error) {
    throw new CommandError(`config.toml is changed, but the running server did not follow: ${(error as Error).message}`)
  } finally {
    server.client.close()
  }
}

interface PacksTable {
  load?: readonly string[]
  isolate?: boolean | readonly string[] | undefined
}

/** Has `isolate` name, of the packs `names`, those in `apart` and no others. A `true` or `false`, which is about all packs, stays. */
function isolated(table: PacksTable, names: readonly string[], apart: readonly string[]): void {
  const { isolate = [] } = table
  if (typeof isolate !== 'boolean') table.isolate = [...isolate.filter(name => !names.includes(name)), ...apart]
}

/** Changes `[packs]`; the rest of the file keeps its words and order. */
async function editPacks(home: string, change: (table: PacksTable) => void): Promise<void> {
  let edited: Promise<void> | undefined
  const editor = definePack({
    name: 'pack-editor',
    needs: { config: Config },
    setup(_ctx, { config }) {
      edited = config.update(file => {
        const table: PacksTable & Record<string, unknown> = { ...(file.packs as object | undefined) }
        change(table)
        if (table.isolate === undefined || (Array.isArray(table.isolate) && table.isolate.length === 0)) delete table.isolate
        file.packs = table
      })
      edited.catch(() => undefined)
    }
  })
  const kernel = await createKernel({
    home,
    product: 'svc-code',
    port: 0,
    packs: [await loadDefaultPack('config'), editor],
    log: { level: 'silent' }
  })
  try {
    await kernel.start()
    await edited
  } finally {
    await kernel.stop()
  }
}
