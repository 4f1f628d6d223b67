/** Plan mode of one agent: its file, entering and leaving, and the revisions that were put up for review. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type BlobStore, makeDirs } from '../../kernel/index.ts'
import type { History, Tracked } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { plansDir, ToolRefusal } from '../tools/index.ts'
import { planEntered, planLeft, planRevised, revisionId } from './contract.ts'
import { newSlug } from './slug.ts'
import { beginState, type PlanState, planState, revisionState } from './state.ts'

/** A longer text is no plan, and it goes into an event. */
const maxBytes = 100 * 1024

interface States {
  readonly plan: Tracked<PlanState>
  readonly begin: Tracked<{ id?: string }>
  readonly versions: Tracked<Record<string, number>>
}

export class AgentPlan {
  readonly #agent: AgentHost
  readonly #history: History
  readonly #blobs: BlobStore
  readonly #states: States

  private constructor(agent: AgentHost, history: History, blobs: BlobStore, states: States) {
    this.#agent = agent
    this.#history = history
    this.#blobs = blobs
    this.#states = states
  }

  static async open(agent: AgentHost, history: History, blobs: BlobStore): Promise<AgentPlan> {
    const [plan, begin, versions] = [await history.track(planState), await history.track(beginState), await history.track(revisionState)]
    return new AgentPlan(agent, history, blobs, { plan, begin, versions })
  }

  get state(): PlanState & { readonly active: boolean } {
    const { plan, begin } = this.#states
    const { id } = begin.value
    return { ...(id === undefined ? {} : { id }), ...plan.value, active: plan.value.active ?? id !== undefined }
  }

  get active(): boolean {
    return this.state.active
  }

  /** Absolute; undefined while there was never a plan. */
  get file(): string | undefined {
    return this.state.id === undefined ? undefined : this.#fileOf(this.state.id)
  }

  /** The file with links on the way resolved; not at its end, where none may be. */
  async realFile(): Promise<string | undefined> {
    const { file } = this
    if (file === undefined) return undefined
    const dir = await realpath(dirname(file)).catch(() => dirname(file)) // not there: nothing leads elsewhere
    return join(dir, basename(file))
  }

  /** The agent has done nothing and was asked nothing. */
  get untouched(): boolean {
    return this.state.id === undefined && this.#history.turnCount() === 0 && this.#history.prompts().length === 0
  }

  /** On disk before it resolves. A plan from before is gone on with. False: it is on already. */
  async enter(by: 'user' | 'tool' | 'default'): Promise<boolean> {
    const id = this.state.id ?? (await this.#newId())
    await makeDirs(dirname(this.#fileOf(id)))
    if (this.active) return false
    await this.#history.append(planEntered.of({ id, by }))
    return true
  }

  /** On disk before it resolves. False: it was not on. */
  async leave(how: 'user' | 'approved' | 'rejected' | 'unreviewed'): Promise<boolean> {
    const { active, id } = this.state
    if (!active || id === undefined) return false
    await this.#history.append(planLeft.of({ id, how }))
    return true
  }

  /** The text of the plan; empty when nothing was written. Throws ToolRefusal for what is no text of a plan. */
  async read(): Promise<string> {
    const { file } = this
    if (file === undefined) return ''
    // A link in its place would lead to a file that nobody may read, and a pipe would be waited for.
    const handle = await open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw new ToolRefusal(`The plan file ${file} cannot be read (${error.code}).`)
      }
    )
    if (!handle) return ''
    try {
      const facts = await handle.stat()
      if (!facts.isFile()) throw new ToolRefusal(`The plan file ${file} is not a regular file.`)
      if (facts.size > maxBytes) throw new ToolRefusal(`The plan has ${facts.size} bytes; at most ${maxBytes} can be reviewed. Shorten it.`)
      const text = await handle.readFile('utf8')
      return text.trim() === '' ? '' : text
    } finally {
      await handle.close()
    }
  }

  /** Keeps the plan as it is put up for review: the copy is on disk before its record. */
  async revise(text: string): Promise<void> {
    const { id } = this.state
    if (id === undefined) return
    const bytes = Buffer.from(text)
    const version = (this.#states.versions.value[id] ?? 0) + 1
    const path = revisionId(id, version)
    await this.#blobs.put(path, bytes)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    await this.#history.append(planRevised.of({ id, version, path, sha256, bytes: bytes.length }))
  }

  #fileOf(id: string): string {
    return join(plansDir(this.#agent.dir), `${id}.md`)
  }

  async #newId(): Promise<string> {
    for (;;) {
      const id = newSlug()
      const taken = await stat(this.#fileOf(id)).catch(() => undefined) // not there, as it should be
      if (!taken) return id
    }
  }
}
