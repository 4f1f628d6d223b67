/** The index of a home: follows the journals of its sessions, whoever writes them, and keeps what it read in a snapshot per session. */
import { join } from 'node:path'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { inOrder } from '../../kernel/index.ts'
import { Corpus, type Document } from './corpus.ts'
import { IndexedSession } from './indexed-session.ts'
import { fileAt, names, statsAt } from './looks.ts'
import { removeSnapshot } from './snapshot.ts'

/** Work between two passes of the loop, so that searches are answered meanwhile. */
const sliceMs = 8

/** A session that may have changed in this process. */
export interface TouchedSession {
  readonly id: string
  /** Of a loaded session: its state is saved a little later. */
  readonly title?: string
  /** `updated_at` in ms. */
  readonly time?: number
}

export class SessionIndex {
  readonly #root: string
  readonly #snapshots: string
  readonly #entries = new Map<string, IndexedSession>()
  corpus = new Corpus()
  /** Changes when documents get other numbers: positions in pages are void then. */
  generation = newGeneration()
  /** All sessions were read once. */
  built = false
  /** When the last look at all of them began (`performance.now()`). */
  lookedAt = -Infinity
  /** The last failure; undefined once everything could be read again. */
  degraded: string | undefined
  /** This process keeps the snapshots. */
  writes = false
  readonly #inOrder = inOrder()
  #looking: Promise<void> | undefined
  #sliceEnd = 0

  constructor(home: string) {
    this.#root = join(home, 'sessions')
    this.#snapshots = join(home, 'search')
  }

  /** What is known of a session in which something was found. */
  facts(session_id: string): Pick<IndexedSession, 'workspace_id' | 'title'> | undefined {
    return this.#entries.get(session_id)
  }

  counts(session_id?: string) {
    if (session_id !== undefined) {
      return { indexed_sessions: 1, total_sessions: 1, documents: this.#entries.get(session_id)?.size ?? 0 }
    }
    const entries = [...this.#entries.values()].filter(({ archived }) => !archived)
    return { indexed_sessions: entries.filter(({ known }) => known).length, total_sessions: entries.length, documents: this.corpus.size }
  }

  textOf(document: Document): string {
    return document.text ?? this.#entries.get(document.session_id)?.textOf(document) ?? ''
  }

  /** Looks at all sessions; single-flight. Resolves when what was on disk at the call before is in. */
  look(): Promise<void> {
    this.#looking ??= this.#inOrder(() => this.#lookAtAll()).finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Looks at some sessions; `whole`: an archived one is read, too. */
  lookAt(sessions: readonly TouchedSession[], whole = false): Promise<void> {
    return this.#inOrder(async () => {
      for (const { id, title, time } of sessions) {
        const workspace_id = this.#entries.get(id)?.workspace_id ?? this.#workspaceOf(id)
        if (workspace_id === undefined) continue
        await this.#read(workspace_id, id, whole)
        const entry = this.#entries.get(id)
        if (entry && title !== undefined && time !== undefined) entry.setTitle(title, time)
      }
    })
  }

  #workspaceOf(id: string): string | undefined {
    try {
      return names(this.#root).find(workspace => statsAt(join(this.#root, workspace, id))?.isDirectory())
    } catch {
      return undefined // the next look at all of them says why
    }
  }

  async #lookAtAll(): Promise<void> {
    this.lookedAt = performance.now()
    const there = new Map<string, string>()
    let unseen: string | undefined
    try {
      for (const workspace_id of names(this.#root)) for (const id of names(join(this.#root, workspace_id))) there.set(id, workspace_id)
    } catch (error) {
      unseen = `sessions could not be looked for: ${(error as NodeJS.ErrnoException).code}` // what was there may be there
    }
    if (!unseen) for (const id of [...this.#entries.keys()]) if (!there.has(id)) await this.#drop(id)
    const ids = [...there.keys()]
    if (!this.built) {
      for (const id of ids) this.#entry(there.get(id) as string, id)
      const times = new Map(ids.map(id => [id, modifiedAt(join(this.#root, there.get(id) as string, id, 'state.json'))]))
      ids.sort((a, b) => (times.get(b) as number) - (times.get(a) as number)) // should not all fit, the newest are there
    }
    for (const id of ids) await this.#read(there.get(id) as string, id, false)
    if (![...this.#entries.values()].some(({ failed }) => failed)) this.degraded = unseen
    if (this.corpus.full) this.degraded = 'there are more documents than can be indexed'
    if (unseen) return
    if (!this.built && this.writes) await this.#sweep().catch(() => undefined) // the next server tries again
    this.built = true
    if (this.corpus.isSparse) await this.#renumber()
  }

  #entry(workspace_id: string, id: string): IndexedSession {
    let entry = this.#entries.get(id)
    if (!entry) {
      const snapshot = join(this.#snapshots, `${id}.jsonl`)
      entry = new IndexedSession(this, { id, workspace_id, dir: join(this.#root, workspace_id, id), snapshot })
      this.#entries.set(id, entry)
    }
    return entry
  }

  async #read(workspace_id: string, id: string, whole: boolean): Promise<void> {
    await this.others()
    const dir = this.#entries.get(id)?.dir ?? join(this.#root, workspace_id, id)
    try {
      const stats = fileAt(join(dir, 'state.json'))
      if (!stats && !statsAt(dir)) {
        await this.#drop(id)
        return
      }
      const entry = this.#entry(workspace_id, id)
      await entry.read(stats?.mtimeMs, whole)
    } catch (error) {
      this.#entry(workspace_id, id).failed = true
      this.degraded = `session ${id} could not be read: ${(error as NodeJS.ErrnoException).code ?? 'damaged'}`
    }
  }

  async #drop(id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (!entry) return
    await entry.empty()
    this.#entries.delete(id)
  }

  /** Snapshots of sessions that are gone, and those that were never finished. */
  async #sweep(): Promise<void> {
    for (const name of names(this.#snapshots)) {
      const id = /^(.*)\.jsonl(?:~|\.new)?$/.exec(name)?.[1]
      const entry = id === undefined ? undefined : this.#entries.get(id)
      if (id !== undefined && (!entry || entry.archived || !name.endsWith('.jsonl')))
        await removeSnapshot(join(this.#snapshots, name)).catch(() => undefined) // the next server tries again
    }
  }

  /** Builds the corpus anew without what is gone. */
  async #renumber(): Promise<void> {
    const corpus = new Corpus()
    const replaced: (() => void)[] = []
    for (const entry of this.#entries.values()) replaced.push(...(await entry.copiedTo(corpus)))
    for (const replace of replaced) replace()
    this.corpus = corpus
    this.generation = newGeneration()
  }

  /** Lets others have their turn between two pieces of work. */
  async others(): Promise<void> {
    if (performance.now() < this.#sliceEnd) return
    await yieldToLoop()
    this.#sliceEnd = performance.now() + sliceMs
  }
}

function modifiedAt(file: string): number {
  try {
    return statsAt(file)?.mtimeMs ?? 0
  } catch {
    return 0 // whoever reads it says so
  }
}

const newGeneration = () => Math.random().toString(36).slice(2, 12)
