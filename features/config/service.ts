/** What other packs get from the user's configuration file (`<home>/config.toml`). */
import { type Detail, extensionPoint, type Static, serviceToken, type TSchema } from '../../kernel/index.ts'
import type { EnvironmentReport } from './environment.ts'

/** One top-level domain of the configuration, contributed by the pack that uses it. */
export interface ConfigSection<S extends TSchema = TSchema> {
  /** Top-level key, snake_case: `providers`, `loop_control`. */
  readonly name: string
  /** Shape of the value in the file: snake_case keys. Checked on every read and patch; an invalid domain falls back to `default`. */
  readonly schema: S
  readonly default: Static<S>
  /** Dotted paths (with `*`) that hold secrets and never leave the server: `*.api_key`. */
  readonly secrets?: readonly string[]
  /** Another name of the domain in files and patches; where a file has both, the values under this name count. */
  readonly alias?: string
  /** Environment overlay: wins over the file and is never written to it. Undefined: no overlay. `report` hears of variables that are not used. */
  readonly overlay?: (env: NodeJS.ProcessEnv, report?: EnvironmentReport) => Partial<Static<S>> | undefined
  /**
   * Wire form for GET/POST config when it differs from camelCased keys (providers); undefined: none. Of a map of records it is asked for each
   * one alone, once as long as the record stays the same.
   */
  toWire?(value: Static<S>): unknown
  /** What can still be used of a stored value that misses the schema; it must fit the schema. Without it the default is used. */
  readonly salvage?: (stored: unknown) => Static<S>
  /**
   * Looks at a value of the file that fits the schema. What it finds becomes a diagnostic, and the value is used all the same. Of a map of
   * records it sees each one alone, once as long as the record stays the same.
   */
  review?(value: Static<S>): readonly ConfigRemark[]
  /** Keys of the domain that are no longer read, with the key that replaced them: a file that has one gets a diagnostic. */
  readonly retired?: Readonly<Record<string, string>>
}

/** What is wrong with a value although it fits the schema. `path` begins below the section. Never carries a value. */
export interface ConfigRemark extends Detail {
  /** A change that brings this in answers 40001; what the file has already does not stand in the way of other changes. */
  readonly refused: boolean
}

/** Every pack that has settings of the user contributes here; of two sections of one name the first counts. */
export const ConfigSections = extensionPoint<ConfigSection>(
  'config-sections',
  undefined,
  { name: 'string', schema: 'object' },
  {
    overlay: () => undefined,
    toWire: () => undefined,
    salvage() {
      return this.default
    },
    review: () => []
  }
)

/** Something in the file or the environment that is not used as written. Never carries a value. */
export interface ConfigDiagnostic {
  /** Top-level key; absent when the file as a whole is meant. */
  readonly domain?: string
  readonly message: string
}

/** What listeners hear. */
export interface ConfigChange {
  /** Top-level keys that changed. */
  readonly fields: readonly string[]
}

/** The configuration as it counts now. */
export interface Config {
  /** Grows whenever an effective value, or what `diagnostics` answers, may have changed. */
  readonly revision: number
  /** Effective value of a domain: default < file < environment. Typed by the section's schema; cached and frozen. */
  get<S extends TSchema>(section: ConfigSection<S>): Static<S>
  /** Deep-merge patch in file form (snake_case), validated whole, written in one atomic save. null deletes a key here. Throws 40001. */
  patch(change: Readonly<Record<string, unknown>>): Promise<void>
  /**
   * Read-modify-write of the latest file content (a copy: plain objects, snake_case) in one save, serialised across processes. Throws 40001
   * like `patch`.
   */
  update(change: (file: Record<string, unknown>) => void): Promise<void>
  /**
   * Called after every change of the file's content, whoever made it (a patch, an outside edit, another process).
   */
  onChange(listener: (change: ConfigChange) => void): () => void
  /** Takes in what is in the file now (one `stat` while it did not change), without waiting for the watcher. Never rejects for a broken file. */
  reload(): Promise<unknown>
  /** What is not used as written right now: an unparsable file, invalid domains, retired keys, sections that clash. */
  diagnostics(): readonly ConfigDiagnostic[]
}

/** Of the config pack. */
export const Config = serviceToken<Config>('config', { onChange: 'notify' })
