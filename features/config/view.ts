/** The configuration object of `GET /api/v1/config`: every domain without secrets, plus the redacted file. */
import { yieldToLoop } from '../../kernel/index.ts'
import { convertKeys, isMap } from './key-case.ts'
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
  readonly #domains = new Map<string, Shown>()
  readonly #raw = new Map<string, Shown>()
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
      const value = await show(this.#domains, section.name, section, settings.get(section), part => domainToWire(section, part))
      if (value !== undefined) put(config, section.name, value)
    }
    config.yolo = config.default_permission_mode === 'yolo'
    const raw: Table = {}
    for (const [name, stored] of Object.entries(settings.table)) {
      const section = settings.section(name)
      put(raw, name, await show(this.#raw, name, section, stored, part => rawToWire(name, section, part)))
    }
    config.raw = raw
    return config
  }
}

async function show(
  known: Map<string, Shown>,
  name: string,
  section: ConfigSection | undefined,
  from: unknown,
  toWire: (part: unknown) => unknown
): Promise<unknown> {
  const last = known.get(name)
  if (last && last.section === section && last.from === from) return last.value
  const value = section && isMap(section) && isTable(from) ? await showRecords(from, toWire) : toWire(from)
  await yieldToLoop()
  known.set(name, { section, from, value })
  return value
}

/** Some records at a time. */
async function showRecords(map: Table, toWire: (part: unknown) => unknown): Promise<Table> {
  const shown: Table = {}
  const entries = Object.entries(map)
  for (let from = 0; from < entries.length; from += 16) {
    const part = toWire(Object.fromEntries(entries.slice(from, from + 16))) as Table
    for (const [key, value] of Object.entries(part)) put(shown, key, value)
    await yieldToLoop()
  }
  return shown
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
