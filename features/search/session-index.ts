/** The index of a home: follows the journals of its sessions, whoever writes them, and keeps what it read in a snapshot per session. */
import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { Corpus, type Document } from './corpus.ts'
import { beginning, type Cursor, readOn, textAt } from './journal.ts'
import { appendSnapshot, type Change, readSnapshot, removeSnapshot, writeSnapshot } from './snapshot.ts'

/** Work between two passes of the loop, so that searches are answered meanwhile. */
const sliceMs = 8

interface Entry {
  readonly id: string
  readonly workspace_id: string
  readonly dir: string
  title: string
  /** Of `state.json`, ms. */
  modified: number
  archived: boolean
  readonly cursors: Map<string, Cursor>
  /** By agent, in order. */
  readonly documents: Map<string, Document[]>
  heading: Document | undefined
  /** The snapshot was looked for. */
  known: boolean
  /** The snapshot has everything that was read. */
  saved: boolean
  /** Size of the snapshot then: another one is of another process. */
  bytes: number
  failed: boolean
}

/** A session that may have changed in this process. */
export interface TouchedSession {
  readonly id: string
  /** Of a loaded session: its state is saved a little later. */
  readonly title?: string
  /** `updated_at` in ms. */
  readonly time?: number
}

const isRoom = (name: string) => !name.startsWith('.')

export class SessionIndex {
  readonly #root: string
  readonly #snapshots: string
  readonly #entries = new Map<string, Entry>()
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
  #work: Promise<unknown> = Promise.resolve()
  #looking: Promise<void> | undefined
  #sliceEnd = 0

  constructor(home: string) {
    this.#root = join(home, 'sessions')
    this.#snapshots = join(home, 'search')
  }

  /** What is known of a session in which something was found. */
  facts(session_id: string): Pick<Entry, 'workspace_id' | 'title'> | undefined {
    return this.#entries.get(session_id)
  }

  counts(session_id?: string) {
    if (session_id !== undefined) {
      const entry = this.#entries.get(session_id)
      const own = [...(entry?.documents.values() ?? [])].reduce((sum, each) => sum + each.length, 0)
      return { indexed_sessions: 1, total_sessions: 1, documents: own + (entry?.heading ? 1 : 0) }
    }
    const entries = [...this.#entries.values()].filter(({ archived }) => !archived)
    return { indexed_sessions: entries.filter(({ known }) => known).length, total_sessions: entries.length, documents: this.corpus.size }
  }

  textOf(document: Document): string {
    const { session_id, agent_id, text, at } = document
    if (text !== undefined) return text
    const entry = this.#entries.get(session_id)
    return (entry && textAt(journalOf(entry, agent_id), at)) ?? ''
  }

  /** Looks at all sessions; single-flight. Resolves when what was on disk at the call before is in. */
  look(): Promise<void> {
    this.#looking ??= this.#serially(() => this.#lookAtAll()).finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Looks at some sessions; `whole`: an archived one is read, too. */
  lookAt(sessions: readonly TouchedSession[], whole = false): Promise<void> {
    return this.#serially(async () => {
      for (const { id, title, time } of sessions) {
        const workspace_id = this.#entries.get(id)?.workspace_id ?? this.#workspaceOf(id)
        if (workspace_id === undefined) continue
        await this.#read(workspace_id, id, whole)
        const entry = this.#entries.get(id)
        if (entry && title !== undefined && time !== undefined) this.#setTitle(entry, title, time)
      }
    })
  }

  #serially(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work)
    this.#work = done.catch(() => undefined) // whoever asked for it hears
    return done
  }

  #workspaceOf(id: string): string | undefined {
    return names(this.#root).find(workspace => statsAt(join(this.#root, workspace, id))?.isDirectory())
  }

  async #lookAtAll(): Promise<void> {
    this.lookedAt = performance.now()
    const there = new Map<string, string>()
    for (const workspace_id of names(this.#root)) for (const id of names(join(this.#root, workspace_id))) there.set(id, workspace_id)
    for (const id of [...this.#entries.keys()]) if (!there.has(id)) await this.#drop(id)
    const ids = [...there.keys()]
    if (!this.built) {
      for (const id of ids) this.#entry(there.get(id) as string, id)
      const times = new Map(ids.map(id => [id, modifiedAt(join(this.#root, there.get(id) as string, id, 'state.json'))]))
      ids.sort((a, b) => (times.get(b) as number) - (times.get(a) as number)) // should not all fit, the newest are there
    }
    for (const id of ids) await this.#read(there.get(id) as string, id, false)
    if (![...this.#entries.values()].some(({ failed }) => failed)) this.degraded = undefined
    if (this.corpus.full) this.degraded = 'there are more documents than can be indexed'
    if (!this.built && this.writes) await this.#sweep()
    this.built = true
    if (this.corpus.isSparse) await this.#renumber()
  }

  #entry(workspace_id: string, id: string): Entry {
    let entry = this.#entries.get(id)
    if (!entry) {
      const dir = join(this.#root, workspace_id, id)
      const start = { title: '', modified: -1, archived: false, heading: undefined, known: false, saved: false, bytes: 0, failed: false }
      entry = { id, workspace_id, dir, ...start, cursors: new Map(), documents: new Map() }
      this.#entries.set(id, entry)
    }
    return entry
  }

  async #read(workspace_id: string, id: string, whole: boolean): Promise<void> {
    await this.#others()
    const known = this.#entries.get(id)
    const dir = known?.dir ?? join(this.#root, workspace_id, id)
    const stats = fileAt(join(dir, 'state.json'))
    if (!stats && !statsAt(dir)) {
      await this.#drop(id)
      return
    }
    const entry = this.#entry(workspace_id, id)
    try {
      if (stats && stats.mtimeMs !== entry.modified) this.#readState(entry, stats.mtimeMs)
      if (entry.archived && !whole) {
        await this.#empty(entry)
        return
      }
      if (this.corpus.full && !entry.known) return
      await this.#readJournals(entry)
      entry.failed = false
    } catch (error) {
      entry.failed = true
      this.degraded = `session ${id} could not be read: ${(error as NodeJS.ErrnoException).code ?? 'damaged'}`
    }
  }

  #readState(entry: Entry, modified: number): void {
    const { title, updated_at, archived } = JSON.parse(readFileSync(join(entry.dir, 'state.json'), 'utf8')) as Record<string, unknown>
    entry.modified = modified
    entry.archived = archived === true
    this.#setTitle(entry, typeof title === 'string' ? title : '', Date.parse(String(updated_at)) || 0)
  }

  #setTitle(entry: Entry, title: string, time: number): void {
    entry.title = title
    if (entry.heading && entry.heading.text === entry.title) {
      entry.heading.time = time
      return
    }
    if (entry.heading) this.corpus.remove(entry.heading)
    const heading = { session_id: entry.id, agent_id: '', number: 0, role: 'title' as const, time, at: 0 }
    entry.heading = entry.title === '' || entry.archived ? undefined : this.corpus.add(heading, entry.title)
  }

  async #readJournals(entry: Entry): Promise<void> {
    const file = this.#snapshotOf(entry.id)
    const agents = names(join(entry.dir, 'agents')).flatMap(agent_id => {
      const stats = fileAt(journalOf(entry, agent_id))
      return stats ? [{ agent_id, size: stats.size, inode: stats.ino }] : []
    })
    if (!entry.known) await this.#restore(entry, file)
    const other = agents.some(({ agent_id, size, inode }) => {
      const cursor = entry.cursors.get(agent_id)
      return cursor !== undefined && (cursor.inode !== inode || size < cursor.at)
    })
    if (other || [...entry.cursors.keys()].some(id => !agents.some(({ agent_id }) => agent_id === id))) this.#forget(entry) // it was restored by hand
    const changes: Change[] = []
    const wasSaved = entry.saved
    for (const { agent_id, size, inode } of agents) {
      const cursor = entry.cursors.get(agent_id) ?? beginning(inode)
      if (size <= cursor.at) continue
      for await (const step of readOn(journalOf(entry, agent_id), cursor)) {
        for (const found of step.found) {
          await this.#others()
          this.#apply(entry, { ...found, agent_id })
          entry.saved = false // should a journal not be read, or the disk refuse it, the next one writes all
          if (wasSaved) changes.push({ ...found, agent_id })
        }
        entry.cursors.set(agent_id, step.cursor)
      }
    }
    const grew = agents.some(({ agent_id, size }) => size > 0 && entry.cursors.has(agent_id))
    entry.known = true
    if (!this.writes || (wasSaved ? changes.length === 0 : !grew)) return
    const cursors = Object.fromEntries(entry.cursors)
    if (wasSaved && sizeOf(file) === entry.bytes) await appendSnapshot(file, changes, cursors)
    else await writeSnapshot(file, this.#all(entry), cursors)
    entry.saved = true
    entry.bytes = sizeOf(file)
  }

  async #restore(entry: Entry, file: string): Promise<void> {
    const bytes = sizeOf(file)
    const snapshot = await readSnapshot(file)
    if (!snapshot) return
    for (const change of snapshot.changes) {
      await this.#others()
      this.#apply(entry, change)
    }
    for (const [agent_id, cursor] of Object.entries(snapshot.cursors)) entry.cursors.set(agent_id, cursor)
    entry.known = true
    entry.saved = true
    entry.bytes = bytes
  }

  #apply(entry: Entry, change: Change): void {
    const own = entry.documents.get(change.agent_id) ?? []
    entry.documents.set(change.agent_id, own)
    if (change.kind === 'document') {
      const { kind: _kind, text, ...document } = change
      own.push(this.corpus.add({ ...document, session_id: entry.id }, text))
      return
    }
    const first = own.findIndex(({ number }) => number >= change.from)
    if (first >= 0) for (const document of own.splice(first)) this.corpus.remove(document)
  }

  *#all(entry: Entry): Generator<Change> {
    for (const [agent_id, documents] of entry.documents) {
      for (const document of documents) {
        const { number, role, time, turn, step, at } = document
        const place = { ...(turn === undefined ? {} : { turn }), ...(step === undefined ? {} : { step }) }
        yield { kind: 'document', agent_id, number, role, time, at, text: this.textOf(document), ...place }
      }
    }
  }

  /** Everything that was read of its journals. */
  #forget(entry: Entry): void {
    for (const document of [...entry.documents.values()].flat()) this.corpus.remove(document)
    entry.documents.clear()
    entry.cursors.clear()
    entry.saved = false
  }

  async #empty(entry: Entry): Promise<void> {
    this.#forget(entry)
    if (entry.heading) this.corpus.remove(entry.heading)
    entry.heading = undefined
    if (entry.known && this.writes) await removeSnapshot(this.#snapshotOf(entry.id)).catch(() => undefined) // as good as before; swept later
    entry.known = false
    if (entry.archived) return
    entry.modified = -1
  }

  async #drop(id: string): Promise<void> {
    const entry = this.#entries.get(id)
    if (!entry) return
    await this.#empty(entry)
    this.#entries.delete(id)
  }

  /** Snapshots of sessions that are gone. */
  async #sweep(): Promise<void> {
    for (const name of names(this.#snapshots)) {
      const id = name.replace(/\.jsonl(?:\.new)?$/, '')
      if (id !== name && (!this.#entries.has(id) || this.#entries.get(id)?.archived || name.endsWith('.new')))
        await removeSnapshot(join(this.#snapshots, name)).catch(() => undefined) // the next server tries again
    }
  }

  /** Builds the corpus anew without what is gone. */
  async #renumber(): Promise<void> {
    const corpus = new Corpus()
    const replaced: (() => void)[] = []
    for (const entry of this.#entries.values()) {
      const { heading } = entry
      if (heading) {
        const fresh = corpus.add(heading, this.textOf(heading))
        replaced.push(() => {
          entry.heading = fresh
        })
      }
      for (const [agent_id, documents] of entry.documents) {
        const fresh: Document[] = []
        for (const document of documents) {
          await this.#others()
          fresh.push(corpus.add(document, this.textOf(document)))
        }
        replaced.push(() => void entry.documents.set(agent_id, fresh))
      }
    }
    for (const replace of replaced) replace()
    this.corpus = corpus
    this.generation = newGeneration()
  }

  #snapshotOf(id: string): string {
    return join(this.#snapshots, `${id}.jsonl`)
  }

  async #others(): Promise<void> {
    if (performance.now() < this.#sliceEnd) return
    await yieldToLoop()
    this.#sliceEnd = performance.now() + sliceMs
  }
}

const journalOf = ({ dir }: Entry, agent_id: string) => join(dir, 'agents', agent_id, 'wire.jsonl')

/** What is at a path, behind links; undefined also for a loop of them. */
function statsAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // nothing to be seen
  }
}

/** Undefined for what is no file: reading a pipe would wait for somebody who writes into it. */
function fileAt(path: string): Stats | undefined {
  const found = statsAt(path)
  return found?.isFile() ? found : undefined
}

const modifiedAt = (file: string) => statsAt(file)?.mtimeMs ?? 0

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0

const newGeneration = () => Math.random().toString(36).slice(2, 12)

function names(dir: string): string[] {
  try {
    return readdirSync(dir).filter(isRoom)
  } catch {
    return [] // none yet, or it went while we looked
  }
}
