/** Packs seen and switched while the server runs: a service of the kernel itself. */
import type { Feature } from './info.ts'
import { serviceToken } from './lifecycle/services.ts'
import type { Pack } from './pack.ts'
import type { PackSource } from './pack-source.ts'

/** Everything about one pack of the kernel, also of one that was unloaded. */
export interface PackReport extends Feature {
  readonly pack: Pack
  /** False once it was unloaded on purpose. */
  readonly wanted: boolean
  /** The server was started on condition that it is active. */
  readonly required: boolean
  /** How long its last setup took, ms; undefined before the first. */
  readonly setup_ms: number | undefined
  /** Since when it is active. */
  readonly active_since: Date | undefined
  /** Its deployment options with defaults filled in; undefined when what was given does not fit its schema. */
  readonly options: Readonly<Record<string, unknown>> | undefined
}

/**
 * Packs come and go while the server runs. One change after the other; each resolves when nothing more follows from it. Not to be awaited in a
 * setup or a clean-up, which is a part of such a change itself.
 */
export interface PackControl {
  /** Undefined where nobody said where packs come from: then those that are there can be switched. */
  readonly source: PackSource | undefined
  list(): readonly PackReport[]
  /** See `Kernel`. Throw a DeveloperError: `pack_unknown`, `pack_there`, `pack_mismatch`. */
  load(pack: Pack | string): Promise<void>
  unload(name: string): Promise<void>
  reload(name: string, replacement?: Pack): Promise<void>
  /** Unloads a pack and forgets it. */
  remove(name: string): Promise<void>
  /** Other deployment options for a pack, from its next activation on; undefined for none. */
  configure(name: string, options: unknown): void
}

/** Provided by the kernel itself. */
export const PackControl = serviceToken<PackControl>('pack-control')
