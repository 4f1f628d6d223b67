/** Where the packs of a running server come from. */
import { type Pack, serviceToken } from '../../kernel/index.ts'

/** The packs and their options as an operator has them configured now. */
export interface Deployment {
  readonly packs: readonly Pack[]
  readonly config: Readonly<Record<string, unknown>>
  readonly disabled: readonly string[]
  readonly required: readonly string[]
  /** What is odd about it and stops nothing. */
  readonly warnings: readonly string[]
}

/** Where the packs of a deployment come from: a service that whoever starts the server brings (`KernelOptions.services`). */
export interface PackSource {
  /** What the server was started with. */
  readonly started: Deployment
  /** What is configured now. A pack that did not change is the same object as before. Throws what is wrong, with its place. */
  read(): Promise<Deployment>
  /** A pack by its name, also a disabled one. */
  find(name: string): Promise<Pack | undefined>
  /**
   * A pack of `load`, its module read again; any other as it is, undefined when it is not known. `runs`: when what was read cannot be used
   * (`broken`), later looks find what was there before.
   */
  reread(name: string, runs: boolean): Promise<Pack | undefined>
  /** Calls back when the configuration may have changed; resolves to the undo. */
  watch(changed: () => void): Promise<() => void>
}

export const PackSource = serviceToken<PackSource>('pack-source')
