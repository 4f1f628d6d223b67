/** Where the servers of a home find each other: `<home>/server/peers/<server_id>.json` says on which loopback port each listens. */
import { type FSWatcher, watch } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { identityAt, isMissing, jsonOf, ownProcess, type ProcessIdentity, readIfThere, replaceFile, stateOf } from '../../kernel/index.ts'

export interface Entry {
  readonly server_id: string
  readonly port: number
  readonly process: ProcessIdentity
  /** Which directory it was written to: an entry in a copy of the home speaks of a server of another home. */
  readonly directory?: string
}

const idForm = /^[0-9A-HJKMNP-TV-Z]{26}$/

/** Some server has announced itself, and may still be there. */
export async function hasEntries(home: string): Promise<boolean> {
  return (await readdir(join(home, 'server', 'peers')).catch(() => [])).length > 0 // missing: nobody has yet
}

export class Directory {
  readonly #dir: string
  readonly #own: string
  #watcher: FSWatcher | undefined

  constructor(home: string, server_id: string) {
    this.#dir = join(home, 'server', 'peers')
    this.#own = server_id
  }

  /** Says where this server listens, and calls `changed` when another one comes or goes, now and then also without a reason. */
  async announce(port: number, changed: () => void): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 })
    try {
      this.#watcher = watch(this.#dir, { persistent: false }, changed)
      this.#watcher.on('error', () => undefined) // those that come later knock themselves
    } catch {
      // no watch to be had here: as above
    }
    const entry: Entry = { server_id: this.#own, port, process: await ownProcess(), directory: await identityAt(this.#dir) }
    await replaceFile(this.#path(this.#own), JSON.stringify(entry), { sync: 'write' })
  }

  async withdraw(): Promise<void> {
    this.#watcher?.close()
    await rm(this.#path(this.#own), { force: true })
  }

  /**
   * The other servers that run on this machine. Removes what dead ones left behind. What cannot be read right now (too many open files) is as it
   * is `known`, and `unread` is called.
   */
  async others(known: readonly Entry[] = [], unread: () => void = () => undefined): Promise<Entry[]> {
    const found: Entry[] = []
    for (const id of await this.#ids(known, unread)) {
      const entry = await this.#read(id).catch(() => {
        unread()
        return known.find(one => one.server_id === id)
      })
      if (!entry) continue
      const state = await stateOf(entry.process)
      if (state === 'alive') found.push(entry)
      if (state === 'gone') await rm(this.#path(id), { force: true }).catch(() => undefined) // somebody else may
    }
    return found
  }

  async #ids(known: readonly Entry[], unread: () => void): Promise<string[]> {
    try {
      const names = await readdir(this.#dir)
      const ids = names.flatMap(name => (name.endsWith('.json') ? name.slice(0, -'.json'.length) : []))
      return ids.filter(id => id !== this.#own && idForm.test(id))
    } catch (error) {
      if (isMissing(error)) return [] // nobody has announced anything yet
      unread()
      return known.map(({ server_id }) => server_id)
    }
  }

  /** The server has ended; in doubt it has not. */
  async isGone(entry: Entry): Promise<boolean> {
    return (await stateOf(entry.process)) === 'gone' || (await this.#read(entry.server_id).catch(() => entry)) === undefined
  }

  /** Undefined when it was removed a moment ago, or is no entry. */
  async #read(id: string): Promise<Entry | undefined> {
    const entry = jsonOf((await readIfThere(this.#path(id))) ?? '') as Partial<Entry> | null | undefined
    const usable = entry?.server_id === id && Number.isSafeInteger(entry.port) && Number.isSafeInteger(entry.process?.pid)
    if (!usable || (entry.directory !== undefined && entry.directory !== (await identityAt(this.#dir)))) return undefined
    return entry as Entry
  }

  #path(id: string): string {
    return join(this.#dir, `${id}.json`)
  }
}
