/** `svc-code pack add|remove`: what `[packs] load` of config.toml names; a running server follows at once. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { unwrap } from '../../client/index.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { Config } from '../config/index.ts'
import { defaultPacks, loadDefaultPack } from '../default-packs.ts'
import type { PackItem } from '../packs/index.ts'
import { CommandError } from './command-error.ts'
import { homeOf, readDeployment } from './deployment.ts'
import type { FlagValues } from './flags.ts'
import type { Io } from './io.ts'
import type { Origin } from './isolation/options.ts'
import { fileOf, forgetModule, installedDir, loadPacks, originOf } from './load-pack.ts'
import { rowOf } from './pack-rows.ts'
import { runningServer } from './servers.ts'

/**
 * A path of a file or directory, a tarball, or a package that npm knows. What is listed already, however it is spelled, is read anew. Exit
 * code 1, and nothing changed, when its pack fails or another one of its name is listed.
 */
export async function addPack(word: string, flags: FlagValues, io: Io): Promise<number> {
  const home = homeOf(flags, io.env)
  const deployment = await readDeployment({ home }, io.env)
  const path = resolve(word)
  const tarball = /\.(?:tgz|tar\.gz)$/.test(word)
  if ((word.startsWith('.') || word.startsWith('/') || tarball) && !existsSync(path)) throw new CommandError(`there is no ${path}`)
  const byPath = existsSync(path) && !tarball
  const known = byPath ? listedAs({ spec: path, from: home }, deployment.load) : undefined
  const spec = known ?? (byPath ? path : await install(home, tarball ? path : word, io))
  const before = deployment.load.map(one => one.spec)
  const listed = before.includes(spec)
  const undo = async () => {
    if (!byPath && !listed) await npm(home, ['uninstall', spec], io)
  }
  forgetModule(spec, home)
  const inside = flags['in-process'] ?? false
  const { isolation } = deployment
  const { packs, failed } = await loadPacks([{ spec, from: home }], Object.keys(defaultPacks), undefined, { isolate: !inside, isolation })
  if (failed.length > 0) {
    await undo()
    throw new CommandError(`not added: ${failed.join('; ')}`)
  }
  const names = packs.map(pack => pack.name)
  const others = await loadPacks(
    deployment.load.filter(one => one.spec !== spec),
    [],
    undefined,
    deployment
  )
  const twin = others.packs.find(pack => names.includes(pack.name))
  if (twin) {
    await undo()
    throw new CommandError(
      `not added: a pack named '${twin.name}' is listed already, as ${originOf(twin)?.spec}; to have this one in its place: svc-code pack remove ${twin.name}`
    )
  }
  await editPacks(home, table => {
    table.load = listed ? before : [...before, spec]
    isolated(table, names, !inside)
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
      table.load = before
      table.isolate = deployment.isolate
    })
    await refresh(home, [])
    await undo()
    const why = bad.map(row => `${row.name}: ${row.why}`).join('; ')
    const hint = !inside && /process of its own|another process/.test(why) ? ' (--in-process runs it in that of the server)' : ''
    throw new CommandError(`${listed ? '' : 'not added: '}${why}${hint}`)
  }
  for (const row of rows) io.out(`${did} ${row.name}, ${row.state}${row.why === '' ? '' : `: ${row.why}`}\n`)
  return 0
}

/** By the name of the pack, or as it was added. */
export async function removePack(word: string, flags: FlagValues, io: Io): Promise<number> {
  const home = homeOf(flags, io.env)
  const deployment = await readDeployment({ home }, io.env)
  const { load } = deployment
  const { packs, failed } = await loadPacks(load, [], undefined, deployment)
  const spelled =
    load.find(one => one.spec === word || one.spec === resolve(word))?.spec ?? listedAs({ spec: resolve(word), from: home }, load)
  const named = spelled === undefined ? packs.flatMap((one: Pack) => (one.name === word ? (originOf(one)?.spec ?? []) : [])) : [spelled]
  const files = load.filter(one => named.includes(one.spec)).flatMap(one => fileOf(one) ?? [])
  const specs = load.map(one => one.spec).filter((spec, at) => named.includes(spec) || files.includes(fileOf(load[at] as Origin) ?? ''))
  if (specs.length === 0) throw new CommandError(`[packs] load of config.toml names no pack '${word}'`)
  const left = load.map(one => one.spec).filter(spec => !specs.includes(spec))
  await editPacks(home, table => {
    table.load = left
    const stay = packs.filter(pack => left.includes(originOf(pack)?.spec ?? '')).map(pack => pack.name)
    const isGone = (name: string) => name === word || (failed.length === 0 && !stay.includes(name))
    if (typeof table.isolate === 'object') table.isolate = table.isolate.filter(name => !isGone(name))
  })
  const { items } = await refresh(home, [])
  const gone = packs.filter(pack => specs.includes(originOf(pack)?.spec ?? '')).map(pack => pack.name)
  const still = items?.some(item => gone.includes(item.name))
  for (const spec of specs) if (existsSync(join(home, installedDir, 'node_modules', spec))) await npm(home, ['uninstall', spec], io)
  const server =
    items === undefined ? '' : still ? '; the running server has it from its command line' : '; the running server goes on without it'
  io.out(`removed ${word}${server}\n`)
  return 0
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

/** Puts names into `isolate`, or takes them out. What is said of all packs stays, unless it says the opposite of these. */
function isolated(table: PacksTable, names: readonly string[], apart: boolean): void {
  const { isolate = [] } = table
  if (typeof isolate === 'boolean') return
  const others = isolate.filter(name => !names.includes(name))
  table.isolate = apart ? [...others, ...names] : others
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

/** Installs a package below the home; resolves to its name. */
async function install(home: string, spec: string, io: Io): Promise<string> {
  const dir = join(home, installedDir)
  const manifest = join(dir, 'package.json')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n')
  await npm(home, ['install', spec], io)
  const { dependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies?: Record<string, string> }
  const wanted = spec.replace(/(?<=.)@[^/]*$/, '')
  const found = Object.entries(dependencies).find(
    ([name, from]) => name === wanted || (from.startsWith('file:') && basename(from) === basename(spec))
  )
  if (!found) throw new CommandError(`npm installed ${spec}, but not under a name that ${manifest} tells`)
  return found[0]
}

/** What svc-code itself brings is not installed beside it: a pack gets the kernel that runs it. */
async function npm(home: string, args: readonly string[], { env, err }: Io): Promise<void> {
  const all = [
    ...args,
    '--prefix',
    join(home, installedDir),
    '--legacy-peer-deps',
    '--omit=dev',
    '--no-audit',
    '--no-fund',
    '--loglevel=error'
  ]
  const code = await new Promise<number | null>((done, fail) => {
    const child = spawn('npm', all, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.on('data', chunk => err(String(chunk)))
    child.once('error', error => fail(new CommandError(`npm cannot be run: ${error.message}`)))
    child.once('close', done)
  })
  if (code !== 0) throw new CommandError(`npm ${args.join(' ')} ended with code ${code}`)
}
