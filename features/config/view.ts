/** The configuration object of `GET /api/v1/config`: every domain without secrets, plus the redacted file. */
import { yieldToLoop } from '../../kernel/index.ts'
import { convertKeys, isMap } from './key-case.ts'
import { RecordMemo } from './record-memo.ts'
import { redact } from './redaction.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { isTable, own, put, type Table } from './tables.ts'

/** A domain as it was shown last. */
interface Shown {
  readonly section: ConfigSection | undefined
  readonly from: unknown
  readonly value: unknown
}

/** Made once for each revision of the settings, in shares of the event loop; domains that did not change are taken over. */
export class ConfigView {
  readonly #settings: Settings
  readonly #domains = new Shelf()
  readonly #raw = new Shelf()
  #revision = -1
  #config: Table = {}

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** As of the last `prepare`. Nobody changes it. */
  get config(): Table {
    return this.#config
  }

  /** Makes the object as of now and answers it. */
  async prepare(): Promise<Table> {
    while (this.#revision !== this.#settings.revision) {
      const { revision } = this.#settings
      const config = await this.#build()
      if (revision !== this.#settings.revision) continue // something changed meanwhile
      this.#config = config
      this.#revision = revision
    }
    return this.#config
  }

  async #build(): Promise<Table> {
    const settings = this.#settings
    const config: Table = {}
    for (const section of settings.sections()) {
      const value = await this.#domains.show(section.name, section, settings.get(section), part => domainToWire(section, part))
      if (value !== undefined) put(config, section.name, value)
    }
    config.yolo = config.default_permission_mode === 'yolo'
    const raw: Table = {}
    for (const [name, stored] of Object.entries(settings.table)) {
      const section = settings.section(name)
      put(raw, name, await this.#raw.show(name, section, stored, part => rawToWire(name, section, part)))
    }
    config.raw = raw
    return config
  }
}

/** What was shown, domain by domain and record by record. */
class Shelf {
  readonly #domains = new Map<string, Shown>()
  readonly #records = new RecordMemo<unknown>()

  async show(name: string, section: ConfigSection | undefined, from: unknown, toWire: (part: unknown) => unknown): Promise<unknown> {
    const last = this.#domains.get(name)
    if (last && last.section === section && last.from === from) return last.value
    const value = section && isMap(section) && isTable(from) ? await this.#showRecords(section, from, toWire) : toWire(from)
    await yieldToLoop()
    this.#domains.set(name, { section, from, value })
    return value
  }

  /** One by one. */
  async #showRecords(section: ConfigSection, map: Table, toWire: (part: unknown) => unknown): Promise<Table> {
    const shown: Table = {}
    for (const [at, name] of Object.keys(map).entries()) {
      put(
        shown,
        name,
        this.#records.of(section, name, map[name], record => own((toWire(Object.fromEntries([[name, record]])) ?? {}) as Table, name))
      )
      if (at % 16 === 0) await yieldToLoop()
    }
    return shown
  }
}

/** A domain as clients see it: the section's own wire form, or the value without secrets in camelCase. */
function domainToWire(section: ConfigSection, value: unknown): unknown {
  if (section.toWire) return redact(section.toWire(value), { names: isMap(section) })
  return convertKeys(section.name, redact(value, { names: isMap(section), secrets: section.secrets }), 'camel', section.schema)
}

/** A domain of the file in its own spelling, without secrets. */
function rawToWire(name: string, section: ConfigSection | undefined, value: unknown): unknown {
  if (!section) return own(redact({ [name]: value }) as Table, name)
  return redact(value, { names: isMap(section), secrets: section.secrets })
}
