/** The configuration object of `GET /api/v1/config`: every domain without secrets, plus the redacted file. What did not change is not made again. */
import { withJsonText } from '../../kernel/index.ts'
import { MapView, member, type Shown } from './map-view.ts'
import { isMap } from './rows.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { inSlices } from './slices.ts'
import { isTable, type Table } from './tables.ts'
import { domainToWire, rawToWire } from './wire.ts'

interface Domain {
  readonly section: ConfigSection | undefined
  readonly map: MapView
  /** What was shown last. */
  readonly from: unknown
  readonly shown: Shown
}

export class ConfigView {
  readonly #settings: Settings
  readonly #domains = new Map<string, Domain>()
  readonly #raw = new Map<string, Domain>()
  #shown: { readonly revision: number; readonly config: Table } | undefined

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** As of now. */
  config(): Table {
    if (this.#shown?.revision === this.#settings.revision) return this.#shown.config
    for (const work = this.#build(); ; ) {
      const step = work.next()
      if (step.done) return step.value
    }
  }

  /** Makes what `config` will answer, in shares of the event loop. */
  async prepare(): Promise<void> {
    if (this.#shown?.revision !== this.#settings.revision) await inSlices(this.#build())
  }

  *#build(): Generator<void, Table, void> {
    const settings = this.#settings
    const { revision, table } = settings
    const config = new Members()
    for (const section of settings.sections()) {
      const show = (value: unknown) => domainToWire(section, value)
      config.add(section.name, yield* showDomain(this.#domains, section.name, section, settings.get(section), show))
      yield
    }
    config.add('yolo', plain(config.value.default_permission_mode === 'yolo'))
    const raw = new Members()
    for (const [name, stored] of Object.entries(table)) {
      const section = settings.section(name)
      raw.add(name, yield* showDomain(this.#raw, name, section, stored, value => rawToWire(name, section, value)))
      yield
    }
    config.add('raw', { text: raw.text(), value: () => raw.value })
    this.#shown = { revision, config: withJsonText(config.value, config.text()) }
    return config.value
  }
}

function* showDomain(
  known: Map<string, Domain>,
  name: string,
  section: ConfigSection | undefined,
  from: unknown,
  show: (value: unknown) => unknown
): Generator<void, Shown, void> {
  const last = known.get(name)
  const before = last?.section === section ? last : undefined
  if (before && before.from === from) return before.shown
  const map = before?.map ?? new MapView(show)
  const shown = section && isMap(section) && isTable(from) ? yield* map.show(from) : plain(show(from))
  known.set(name, { section, map, from, shown })
  return shown
}

function plain(value: unknown): Shown {
  return { text: JSON.stringify(value), value: () => value }
}

/** An object and its text, put together member by member. */
class Members {
  readonly value: Table = {}
  readonly #texts: string[] = []

  add(key: string, { text, value }: Shown): void {
    const both = member(key, text)
    if (both === undefined) return
    Object.defineProperty(this.value, key, { get: value, enumerable: true, configurable: true })
    this.#texts.push(both)
  }

  text(): string {
    return `{${this.#texts.join(',')}}`
  }
}
