/** What the index holds of one session: what was read of its journals, its title, and what of it is on disk. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Corpus, Document } from './corpus.ts'
import { beginning, type Cursor, readOn, textAt } from './journal.ts'
import { fileAt, names, sizeOf } from './looks.ts'
import { appendSnapshot, type Change, readSnapshot, removeSnapshot, writeSnapshot } from './snapshot.ts'

/** What sessions have in common. */
interface Index {
  /** Another one when it was built anew. */
  readonly corpus: Corpus
  /** This process keeps the snapshots. */
  readonly writes: boolean
  others(): Promise<void>
}

interface Place {
  readonly id: string
  readonly workspace_id: string
  readonly dir: string
  /** File. */
  readonly snapshot: string
}

export class IndexedSession {
  readonly id: string
  readonly workspace_id: string
  readonly dir: string
  title = ''
  archived = false
  /** The snapshot was looked for. */
  known = false
  failed = false
  readonly #index: Index
  readonly #snapshot: string
  /** Of `state.json`, ms. */
  #modified = -1
  /** When the session changed, ms. */
  #time = 0
  readonly #cursors = new Map<string, Cursor>()
  /** By agent, in order. */
  readonly #documents = new Map<string, Document[]>()
  #heading: Document | undefined
  /** The snapshot has everything that was read. */
  #saved = false
  /** Size of the snapshot then: another one is of another process. */
  #bytes = 0

  constructor(index: Index, { id, workspace_id, dir, snapshot }: Place) {
    this.id = id
    this.workspace_id = workspace_id
    this.dir = dir
    this.#index = index
    this.#snapshot = snapshot
  }

  /** Documents. */
  get size(): number {
    return [...this.#documents.values()].reduce((sum, each) => sum + each.length, this.#heading ? 1 : 0)
  }

  textOf({ agent_id, text, at }: Document): string {
    return text ?? textAt(this.#journalOf(agent_id), at) ?? ''
  }

  /** Takes in what is new. `modified`: of its state, which may be missing; `whole`: it is read although it is archived. */
  async read(modified: number | undefined, whole: boolean): Promise<void> {
    if (modified !== undefined && modified !== this.#modified) this.#readState(modified)
    if (this.archived && !whole) {
      await this.empty()
      return
    }
    this.#showTitle()
    if (this.#index.corpus.full && !this.known) return
    await this.#readJournals()
    this.failed = false
  }

  #readState(modified: number): void {
    const { title, updated_at, archived } = JSON.parse(readFileSync(join(this.dir, 'state.json'), 'utf8')) as Record<string, unknown>
    this.#modified = modified
    this.archived = archived === true
    this.title = typeof title === 'string' ? title : ''
    this.#time = Date.parse(String(updated_at)) || 0
  }

  /** Of a loaded session, after `read`. */
  setTitle(title: string, time: number): void {
    this.title = title
    this.#time = time
    if (!this.archived || this.known) this.#showTitle()
  }

  #showTitle(): void {
    if (this.#heading && this.#heading.text === this.title) {
      this.#heading.time = this.#time
      return
    }
    if (this.#heading) this.#index.corpus.remove(this.#heading)
    const heading = { session_id: this.id, agent_id: '', number: 0, role: 'title' as const, time: this.#time, at: 0 }
    this.#heading = this.title === '' ? undefined : this.#index.corpus.add(heading, this.title)
  }

  async #readJournals(): Promise<void> {
    const file = this.#snapshot
    const agents = names(join(this.dir, 'agents')).flatMap(agent_id => {
      const stats = fileAt(this.#journalOf(agent_id))
      return stats ? [{ agent_id, size: stats.size, inode: stats.ino }] : []
    })
    if (!this.known) await this.#restore(file)
    const other = agents.some(({ agent_id, size, inode }) => {
      const cursor = this.#cursors.get(agent_id)
      return cursor !== undefined && (cursor.inode !== inode || size < cursor.at)
    })
    if (other || [...this.#cursors.keys()].some(id => !agents.some(({ agent_id }) => agent_id === id))) this.#forget() // it was restored by hand
    const changes: Change[] = []
    const wasSaved = this.#saved
    for (const { agent_id, size, inode } of agents) {
      const cursor = this.#cursors.get(agent_id) ?? beginning(inode)
      if (size <= cursor.at) continue
      for await (const step of readOn(this.#journalOf(agent_id), cursor)) {
        for (const found of step.found) {
          await this.#index.others()
          this.#apply({ ...found, agent_id })
          this.#saved = false // should a journal not be read, or the disk refuse it, the next one writes all
          if (wasSaved) changes.push({ ...found, agent_id })
        }
        this.#cursors.set(agent_id, step.cursor)
      }
    }
    const grew = agents.some(({ agent_id, size }) => size > 0 && this.#cursors.has(agent_id))
    this.known = true
    if (!this.#index.writes || (wasSaved ? changes.length === 0 : !grew)) return
    const cursors = Object.fromEntries(this.#cursors)
    if (wasSaved && sizeOf(file) === this.#bytes) await appendSnapshot(file, changes, cursors)
    else await writeSnapshot(file, this.#all(), cursors)
    this.#saved = true
    this.#bytes = sizeOf(file)
  }

  async #restore(file: string): Promise<void> {
    const bytes = sizeOf(file)
    const snapshot = await readSnapshot(file)
    if (!snapshot) return
    for (const change of snapshot.changes) {
      await this.#index.others()
      this.#apply(change)
    }
    for (const [agent_id, cursor] of Object.entries(snapshot.cursors)) this.#cursors.set(agent_id, cursor)
    this.known = true
    this.#saved = true
    this.#bytes = bytes
  }

  #apply(change: Change): void {
    const own = this.#documents.get(change.agent_id) ?? []
    this.#documents.set(change.agent_id, own)
    if (change.kind === 'document') {
      const { kind: _kind, text, ...document } = change
      own.push(this.#index.corpus.add({ ...document, session_id: this.id }, text))
      return
    }
    const first = own.findIndex(({ number }) => number >= change.from)
    if (first >= 0) for (const document of own.splice(first)) this.#index.corpus.remove(document)
  }

  *#all(): Generator<Change> {
    for (const [agent_id, documents] of this.#documents) {
      for (const document of documents) {
        const { number, role, time, turn, step, at } = document
        yield { kind: 'document', agent_id, number, role, time, turn, step, at, text: this.textOf(document) }
      }
    }
  }

  /** Everything that was read of its journals. */
  #forget(): void {
    for (const document of [...this.#documents.values()].flat()) this.#index.corpus.remove(document)
    this.#documents.clear()
    this.#cursors.clear()
    this.#saved = false
  }

  async empty(): Promise<void> {
    this.#forget()
    if (this.#heading) this.#index.corpus.remove(this.#heading)
    this.#heading = undefined
    if (this.known && this.#index.writes) await removeSnapshot(this.#snapshot).catch(() => undefined) // as good as before; swept later
    this.known = false
    if (this.archived) return
    this.#modified = -1
  }

  /** Adds its documents to another corpus; answers what takes them over. */
  async copiedTo(corpus: Corpus): Promise<(() => void)[]> {
    const replaced: (() => void)[] = []
    const heading = this.#heading && corpus.add(this.#heading, this.textOf(this.#heading))
    replaced.push(() => {
      this.#heading = heading
    })
    for (const [agent_id, documents] of this.#documents) {
      const fresh: Document[] = []
      for (const document of documents) {
        await this.#index.others()
        fresh.push(corpus.add(document, this.textOf(document)))
      }
      replaced.push(() => void this.#documents.set(agent_id, fresh))
    }
    return replaced
  }

  #journalOf(agent_id: string): string {
    return join(this.dir, 'agents', agent_id, 'wire.jsonl')
  }
}
