/** Brings a plugin into the home: staged, checked, then moved in place in one step. A failed one leaves nothing. */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, headOf, invalid, isMissing, type Logger, underFirstAbort, withLock } from '../../kernel/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import type { PluginRecord } from './contract.ts'
import { type DownloadPorts, DownloadProblem, downloadTo, refToTake } from './download.ts'
import { loadPlugin, manifests } from './manifest.ts'
import { type PluginPlace, placeOf } from './source.ts'
import { stagingPlace } from './staging.ts'
import { copyTree, UnpackProblem, unzip } from './unpack.ts'

export interface InstallerPorts extends Omit<DownloadPorts, 'signal'> {
  /** `<home>/plugins` */
  readonly dir: string
  readonly hosts: readonly string[]
  readonly download_ms: number
  readonly log: Logger
  /** Why nobody can run a server of a plugin. */
  serverProblem(config: Readonly<Record<string, unknown>>): string | undefined
  newId(): string
}

/** What was copied; the rest of its record is written by who keeps the list. */
export type Arrived = Pick<PluginRecord, 'id' | 'root' | 'source' | 'originalSource' | 'integrity' | 'repo'>

interface Staged {
  readonly integrity: string
  readonly repo?: PluginRecord['repo']
}

export class Installer {
  readonly #ports: InstallerPorts

  constructor(ports: InstallerPorts) {
    this.#ports = ports
  }

  get #managed(): string {
    return join(this.#ports.dir, 'managed')
  }

  /**
   * `keep` puts it on record; when it rejects, the copy that was there before is back. Throws 40001 for what is no plugin, PathMissing (40409).
   */
  async install<T>(source: string, signal: AbortSignal, keep: (arrived: Arrived) => Promise<T>): Promise<T> {
    const place = placeOf(source, this.#ports.hosts)
    if (place.kind === 'local-path') await assertDirectory(place.path)
    const staging = await stagingPlace(this.#ports.dir)
    await mkdir(staging, { recursive: true, mode: 0o700 })
    try {
      const staged = await this.#fetch(place, staging, signal).catch((error: unknown) => {
        if (error instanceof DownloadProblem || error instanceof UnpackProblem) throw refused(error.message)
        throw error
      })
      const root = await unwrapped(join(staging, 'files'))
      const { contents, diagnostics } = await loadPlugin(root)
      if (!contents) {
        const errors = diagnostics.filter(({ severity }) => severity === 'error')
        throw refused(errors.map(({ message }) => message).join('; '))
      }
      for (const [server, config] of Object.entries(contents.mcpServers)) {
        const problem = this.#ports.serverProblem(config)
        if (problem !== undefined) throw refused(`mcpServers.${server}: ${problem}`)
      }
      const arrived = {
        id: contents.id,
        root: join(this.#managed, contents.id),
        source: place.kind,
        originalSource: source.trim(),
        ...staged
      }
      return await this.locked(() => this.#replace(root, arrived.root, () => keep(arrived)))
    } finally {
      await rm(staging, { recursive: true, force: true })
    }
  }

  /** One change of the directory at a time, also between processes. */
  locked<T>(work: () => Promise<T>): Promise<T> {
    return withLock(join(this.#ports.dir, 'plugins.lock'), work, { timeoutMs: 60_000 })
  }

  /** Removes the files; call while `locked`. */
  async remove(id: string): Promise<void> {
    await rm(join(this.#managed, id), { recursive: true, force: true })
  }

  /** What a process left that died between two steps: previous copies come back, those that are not whole go. Call while `locked`. */
  async repair(): Promise<void> {
    const names: string[] = await readdir(this.#managed).catch(() => []) // nothing was ever installed
    for (const name of names) {
      const id = /^\.old-([a-z0-9_-]+)-[^-]+$/.exec(name)?.[1]
      if (id === undefined) continue
      if (names.includes(id)) await this.#sweep(join(this.#managed, name))
      else await rename(join(this.#managed, name), join(this.#managed, id))
    }
  }

  async #fetch(place: PluginPlace, staging: string, signal: AbortSignal): Promise<Staged> {
    const files = join(staging, 'files')
    if (place.kind === 'local-path') return { integrity: await copyTree(place.path, files, signal) }
    const limit = AbortSignal.timeout(this.#ports.download_ms)
    return await underFirstAbort([signal, limit], limited => this.#download(place, staging, files, limited))
  }

  async #download(
    place: Exclude<PluginPlace, { kind: 'local-path' }>,
    staging: string,
    files: string,
    signal: AbortSignal
  ): Promise<Staged> {
    const ports = { ...this.#ports, signal }
    const zip = join(staging, 'archive.zip')
    const taken = place.kind === 'repo' ? { ...place, ...(await refToTake(place.base, place.ref, ports)) } : place
    const integrity = await downloadTo(zip, taken.url, ports)
    await mkdir(files, { mode: 0o700 })
    const comment = await unzip(zip, files, signal)
    if (taken.kind !== 'repo') return { integrity }
    const { owner, repo, ref } = taken
    // Hosts of repositories write the commit into the comment of their archives.
    const sha = /^[0-9a-f]{40}$/.exec(comment.trim())?.[0]
    return { integrity, repo: { owner, repo, ref, ...(sha === undefined ? {} : { installedSha: sha }) } }
  }

  async #replace<T>(staged: string, target: string, keep: () => Promise<T>): Promise<T> {
    await mkdir(this.#managed, { recursive: true, mode: 0o700 })
    await this.repair()
    const previous = join(this.#managed, `.old-${target.slice(this.#managed.length + 1)}-${this.#ports.newId()}`)
    const before = await exists(target)
    if (before) await rename(target, previous)
    try {
      await rename(staged, target)
      const kept = await keep()
      if (before) await this.#sweep(previous)
      return kept
    } catch (error) {
      await rm(target, { recursive: true, force: true })
      if (before) await rename(previous, target)
      throw error
    }
  }

  /** A copy that nobody uses any more. One that cannot be removed (its programs may have made it so) is tried again with the next change. */
  async #sweep(copy: string): Promise<void> {
    await rm(copy, { recursive: true, force: true }).catch((err: unknown) =>
      this.#ports.log.warn({ err, copy }, 'a copy of a plugin cannot be removed')
    )
  }
}

/** An archive without a manifest at its top, and with one directory, stands for that directory. */
async function unwrapped(dir: string): Promise<string> {
  if ((await Promise.all(manifests.map(name => exists(join(dir, name))))).includes(true)) return dir
  // What the archiver of macOS puts beside the files is none of them.
  const directories = (await readdir(dir, { withFileTypes: true })).filter(entry => entry.isDirectory() && entry.name !== '__MACOSX')
  return directories.length === 1 ? join(dir, directories[0]!.name) : dir
}

async function assertDirectory(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    if (isMissing(error)) throw new AppError(PathMissing, { message: `path not found: ${path}` })
    throw refused('it cannot be read')
  })
  if (!found.isDirectory()) throw refused('is no directory: an archive is taken from its http(s) address, or unpacked')
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false
  )

export const refused = (why: string) => invalid([{ path: 'body.source', message: headOf(why, 1000) }])
