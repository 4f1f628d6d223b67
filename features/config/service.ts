/** What other packs get from the user's configuration file (`<home>/config.toml`). */
import type { TSchema, Static } from '@sinclair/typebox'
import { extensionPoint, serviceToken } from '../../kernel/index.ts'

/** One top-level domain of the configuration, contributed by the pack that uses it. */
export interface ConfigSection<S extends TSchema = TSchema> {
  /** Top-level key, snake_case: `providers`, `loop_control`. */
  readonly name: string
  /** Shape of the value in the file: snake_case keys. Checked on every read and patch; an invalid domain falls back to `default`. */
  readonly schema: S
  readonly default: Static<S>
  /** Dotted paths (with `*`) that hold secrets and never leave the server: `*.api_key`. */
  readonly secrets?: readonly string[]
  /** Environment overlay: wins over the file and is never written to it. Undefined: no overlay. */
  readonly overlay?: (env: NodeJS.ProcessEnv) => Partial<Static<S>> | undefined
  /** Wire form for GET/POST config when it differs from camelCased keys (providers). */
  readonly toWire?: (value: Static<S>) => unknown
}

export const ConfigSections = extensionPoint<ConfigSection>('config-sections')

export interface ConfigChange {
  /** Top-level keys that changed. */
  readonly fields: readonly string[]
}

export interface Config {
  /** Effective value of a domain: default < file < environment. Typed by the section's schema. */
  get<S extends TSchema>(section: ConfigSection<S>): Static<S>
  /** Deep-merge patch in file form (snake_case), validated whole, written in one atomic save. null deletes a key here. Throws 40001. */
  patch(change: Readonly<Record<string, unknown>>): Promise<void>
  /** Read-modify-write of the latest file content (plain objects, snake_case) in one save, serialised across processes. */
  update(change: (file: Record<string, unknown>) => void): Promise<void>
  onChange(listener: (change: ConfigChange) => void): () => void
  /** The first read of the file; resolves at once when loaded. */
  ready(): Promise<void>
}

export const Config = serviceToken<Config>('config')
