/** The Config service: effective values over one file, patches in one save, change notice. */
import { asContributed, type Detail, inOrder, invalid, type Static, type TSchema, yieldToLoop } from '../../kernel/index.ts'
import { type Effective, effective } from './effective.ts'
import { faultsOf } from './faults.ts'
import type { ConfigFile, FileContent, FileProblem } from './file.ts'
import type { Config, ConfigChange, ConfigDiagnostic, ConfigSection } from './service.ts'
import { changedKeys, copy, freeze, mergeTable, own, shared, type Table } from './tables.ts'
import { didYouMean, maxStrangers, meant } from './unknown-keys.ts'

interface SettingsOptions {
  readonly file: ConfigFile
  readonly env: NodeJS.ProcessEnv
  readonly log: { warn(facts: object, text: string): void; error(facts: object, text: string): void }
  /** Hears that a file that could not be used can be used again. */
  readonly repaired?: () => void
  /** Hears what `diagnostics` answers whenever it is something else than before, once all sections are there. */
  readonly warned?: (diagnostics: readonly ConfigDiagnostic[]) => void
  /** Contributed sections; of two with one name the first counts. */
  readonly sections: () => readonly ConfigSection[]
  /** The section of this name is away for a moment: its pack comes back by itself. */
  readonly returns?: (name: string) => boolean
  /** Sections that count while nobody contributes one of their name. */
  readonly standIns?: readonly ConfigSection[]
  /** Work on new content that listeners will ask for, done in shares of the event loop before they hear of it. */
  readonly prepare?: () => Promise<unknown>
}

interface SaveOptions {
  /** Top-level keys that listeners hear of even if their values are as before. */
  readonly announce?: readonly string[]
  /** What the caller finds wrong: the save is refused, and all that is wrong is named together. */
  readonly faults?: (before: Table, next: Table) => readonly Detail[]
}

export class Settings implements Config {
  readonly #options: SettingsOptions
  readonly #listeners = new Set<(change: ConfigChange) => void>()
  /** Undefined since sections came or went. */
  #byName: ReadonlyMap<string, ConfigSection> | undefined
  #clashes: ConfigDiagnostic[] = []
  readonly #values = new Map<ConfigSection, Effective>()
  #table: Table = freeze({})
  #problem: FileProblem | undefined
  /** The file could be used at some time. */
  #wasRead = false
  /** Top-level keys that no section knows are told. */
  #judges = false
  #reported = new Set<string>()
  /** The diagnostics that clients heard last. */
  #warned = ''
  readonly #queued = inOrder()
  #first: Promise<void> | undefined
  #revision = 0

  constructor(options: SettingsOptions) {
    this.#options = options
    this.sectionsChanged()
  }

  ready(): Promise<void> {
    this.#first ??= this.reload().then(() => undefined)
    return this.#first
  }

  /** Content of the file that is in force, frozen. */
  get table(): Table {
    return this.#table
  }

  get revision(): number {
    return this.#revision
  }

  section(name: string): ConfigSection | undefined {
    return this.#known().get(name)
  }

  /** Every domain that is known: contributed ones, then stand-ins. */
  sections(): readonly ConfigSection[] {
    return [...this.#known().values()]
  }

  get<S extends TSchema>(section: ConfigSection<S>): Static<S> {
    // Of the one that was collected the failures are put down to its pack.
    const known = this.#known().get(section.name)
    return this.#effective(known && asContributed(known) === asContributed(section) ? known : section).value
  }

  async patch(change: Readonly<Record<string, unknown>>): Promise<void> {
    await this.save(file => mergeTable(file, change))
  }

  async update(change: (file: Record<string, unknown>) => void): Promise<void> {
    await this.save(file => {
      const draft = copy(file)
      change(draft)
      return draft
    })
  }

  onChange(listener: (change: ConfigChange) => void): () => void {
    const entry = (change: ConfigChange) => listener(change) // a listener may be registered twice
    this.#listeners.add(entry)
    return () => this.#listeners.delete(entry)
  }

  diagnostics(): readonly ConfigDiagnostic[] {
    const instead = this.#wasRead ? 'the last good content is used' : 'it counts as empty'
    const broken = this.#problem ? [{ message: `config.toml cannot be used: ${this.#problem.message}; ${instead}` }] : []
    const domains = this.sections().flatMap(section => this.#effective(section).diagnostics)
    return [...broken, ...this.#clashes, ...this.#strangers(), ...domains]
  }

  /** Top-level keys, as files and patches may spell them. */
  names(): readonly string[] {
    return this.sections().flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias]))
  }

  /**
   * All sections are there: from now on a top-level key that is none of them is told. While packs come up or go down one by one, most sections are
   * missing: nothing is told then.
   */
  judgeNames(): void {
    this.#judges = true
    this.#revision++
    this.#warn()
  }

  /** Packs go down: unknown keys are told no more. */
  leaveNames(): void {
    this.#judges = false
    this.#revision++
  }

  /** A pack has come or gone, or comes back no more. */
  packsChanged(): void {
    if (!this.#judges) return
    this.#revision++
    this.#warn()
  }

  #strangers(): ConfigDiagnostic[] {
    if (!this.#judges) return []
    const known = [...this.names(), 'packs'] // that one belongs to the command line
    return Object.keys(this.#table)
      .filter(key => !known.includes(key) && !this.#options.returns?.(key))
      .slice(0, maxStrangers)
      .map(key => {
        const word = meant(key, known)
        return { domain: key, message: `config.toml: ${key} ${word === undefined ? 'is unknown: nobody reads it' : didYouMean(word)}` }
      })
  }

  /** Sections came or went. */
  sectionsChanged(): void {
    this.#byName = undefined
    this.#revision++
    this.packsChanged()
  }

  #known(): ReadonlyMap<string, ConfigSection> {
    if (this.#byName) return this.#byName
    const known = new Map<string, ConfigSection>()
    this.#byName = known
    this.#clashes = []
    for (const section of this.#options.sections()) {
      const first = known.get(section.name)
      if (!first) known.set(section.name, section)
      else if (first !== section)
        this.#clashes.push({ domain: section.name, message: `section ${section.name} was contributed twice; the first one counts` })
    }
    for (const section of this.#options.standIns ?? []) if (!known.has(section.name)) known.set(section.name, section)
    const there = new Set(known.values())
    for (const section of this.#values.keys()) if (!there.has(section)) this.#values.delete(section)
    return known
  }

  /** Takes in what is in the file now; listeners hear of changes. An unparsable file leaves the last good content in force. */
  reload(): Promise<readonly string[]> {
    return this.#queued(async () => this.#prepared(this.#take(await this.#options.file.read()))).then(fields => this.#tell(fields))
  }

  /**
   * Changes the latest file content in one save and resolves when it is on disk, with the top-level keys that changed. `change` gets the
   * content (frozen) and answers the next one; it may throw, then nothing is written. When it is called, `get` answers for the latest content.
   * Throws 40001: invalid values (all of them are named), an unparsable file, or a file that cannot be written.
   */
  async save(change: (file: Table) => Table, { announce = [], faults = () => [] }: SaveOptions = {}): Promise<readonly string[]> {
    const elsewhere = new Set<string>()
    const touched = new Set<string>()
    const take = (content: FileContent) => {
      for (const field of this.#take(content)) elsewhere.add(field)
    }
    const saved = this.#queued(async () => {
      const edit = async (before: Table) => {
        take({ table: before })
        await this.#options.prepare?.()
        const changed = change(before)
        await yieldToLoop()
        const next = shared(before, changed)
        await yieldToLoop()
        for (const name of changedKeys(before, next)) touched.add(name)
        const details = [...faults(before, next)]
        for (const name of touched) details.push(...(await faultsOf(this.#known().get(name), name, own(before, name), own(next, name))))
        if (details.length > 0) throw invalid(details)
        return touched.size > 0 ? next : undefined
      }
      const content = await this.#options.file.change(edit)
      await yieldToLoop()
      take(content)
      return this.#prepared([...new Set([...announce, ...touched, ...elsewhere])])
    })
    return saved.then(
      fields => this.#tell(fields),
      async error => {
        this.#tell([...elsewhere]) // what others saved is in force all the same
        throw error
      }
    )
  }

  #effective(section: ConfigSection): Effective {
    let result = this.#values.get(section)
    if (!result) {
      result = effective(section, this.#table, this.#options.env)
      this.#values.set(section, result)
    }
    return result
  }

  /** Answers the top-level keys that changed. */
  #take({ table, problem }: FileContent): string[] {
    if (this.#problem && !problem) this.#options.repaired?.()
    if (this.#problem !== problem) this.#revision++
    this.#problem = problem
    this.#wasRead ||= !problem
    let changed: string[] = []
    if (table && table !== this.#table) {
      changed = changedKeys(this.#table, table)
      this.#table = table
      for (const section of this.#values.keys()) {
        if (changed.includes(section.name) || changed.includes(section.alias ?? section.name)) this.#values.delete(section)
      }
      this.#revision++
    }
    this.#warn()
    return changed
  }

  async #prepared(fields: readonly string[]): Promise<readonly string[]> {
    if (fields.length > 0 && this.#listeners.size > 0) await this.#options.prepare?.()
    await yieldToLoop()
    return fields
  }

  #tell(fields: readonly string[]): readonly string[] {
    if (fields.length === 0) return fields
    for (const listener of [...this.#listeners]) {
      try {
        listener({ fields })
      } catch (err) {
        this.#options.log.error({ err }, 'what follows from a change of the configuration failed')
      }
    }
    return fields
  }

  /** Logs each diagnostic once, until it went away, and tells when there are others. */
  #warn(): void {
    const now = this.diagnostics()
    for (const { domain, message } of now) {
      if (!this.#reported.has(message)) this.#options.log.warn(domain === undefined ? {} : { domain }, message)
    }
    this.#reported = new Set(now.map(({ message }) => message))
    const warned = [...this.#reported].sort().join('\n')
    if (!this.#judges || warned === this.#warned) return
    this.#warned = warned
    this.#options.warned?.(now)
  }
}
