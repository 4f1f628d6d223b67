/** The configuration object of `GET /api/v1/config`: every domain without secrets, plus the redacted file. What did not change is not made again. */
import { withJsonText } from '../../kernel/index.ts'
import { isMap } from './rows.ts'
import type { ConfigSection } from './service.ts'
import type { Settings } from './settings.ts'
import { inSlices } from './slices.ts'
import { isTable, own, put, type Table } from './tables.ts'
import { domainToWire, rawToWire } from './wire.ts'

/** JSON text of something shown; undefined when it is left out. Its value is made when somebody asks for it. */
interface Shown {
  readonly text: string | undefined
  readonly value: () => unknown
}

interface Domain extends Shown {
  readonly section: ConfigSection | undefined
  /** What it was made of. */
  readonly from: unknown
  /** Rows of a map by their record. Records are frozen: one that was shown before looks the same. */
  readonly rows: Rows
}

type Rows = WeakMap<object, Row>

interface Row {
  /** With its key; undefined when it is left out. */
  readonly text: string | undefined
  readonly value: unknown
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
      const { name } = section
      config.add(name, yield* domain(this.#domains, name, section, settings.get(section), value => domainToWire(section, value)))
    }
    config.add('yolo', plain(config.value.default_permission_mode === 'yolo'))
    const raw = new Members()
    for (const [name, stored] of Object.entries(table)) {
      const section = settings.section(name)
      raw.add(name, yield* domain(this.#raw, name, section, stored, value => rawToWire(name, section, value)))
    }
    config.add('raw', { text: raw.text(), value: () => raw.value })
    this.#shown = { revision, config: withJsonText(config.value, config.text()) }
    return config.value
  }
}

function* domain(
  known: Map<string, Domain>,
  name: string,
  section: ConfigSection | undefined,
  from: unknown,
  show: (value: unknown) => unknown
): Generator<void, Shown, void> {
  const before = known.get(name)
  if (before && before.section === section && before.from === from) return before
  const rows: Rows = before?.section === section && before ? before.rows : new WeakMap()
  const now = section && isMap(section) && isTable(from) ? yield* showMap(from, rows, show) : plain(show(from))
  known.set(name, { ...now, section, from, rows })
  return now
}

function* showMap(map: Table, rows: Rows, show: (rows: Table) => unknown): Generator<void, Shown, void> {
  const texts: string[] = []
  let count = 0
  for (const key of Object.keys(map)) {
    const { text } = showRow(map, key, rows, show)
    if (text !== undefined) texts.push(text)
    if (++count % 16 === 0) yield
  }
  let made: Table | undefined
  const value = () => {
    if (made) return made
    made = {}
    for (const key of Object.keys(map)) {
      const row = showRow(map, key, rows, show)
      if (row.text !== undefined) put(made, key, row.value)
    }
    return made
  }
  return { text: `{${texts.join(',')}}`, value }
}

function showRow(map: Table, key: string, rows: Rows, show: (rows: Table) => unknown): Row {
  const record = map[key]
  const known = isTable(record) ? rows.get(record) : undefined
  if (known) return known
  const alone: Table = {}
  put(alone, key, record)
  const value = own(show(alone) as Table, key)
  const row = { text: member(key, JSON.stringify(value)), value }
  if (isTable(record) && Object.isFrozen(record)) rows.set(record, row)
  return row
}

function plain(value: unknown): Shown {
  return { text: JSON.stringify(value), value: () => value }
}

function member(key: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : `${JSON.stringify(key)}:${text}`
}

/** An object and its text, put together member by member. */
class Members {
  readonly value: Table = {}
  readonly #texts: string[] = []

  add(key: string, { text, value }: Shown): void {
    const with_key = member(key, text)
    if (with_key === undefined) return
    Object.defineProperty(this.value, key, { get: value, enumerable: true, configurable: true })
    this.#texts.push(with_key)
  }

  text(): string {
    return `{${this.#texts.join(',')}}`
  }
}
