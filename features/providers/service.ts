/** What the providers pack offers packs that bring providers along. */
import { serviceToken } from '../../kernel/index.ts'
import type { ProviderItem } from './contract.ts'
import type { FoundModel } from './discovery.ts'

/** Id of the provider that the managed login sets up. */
export const MANAGED_PROVIDER = 'managed:svc-code'

/** A provider with all of its models, as a directory or a registry describes it. */
export interface ImportedProvider {
  readonly id: string
  readonly type: string
  readonly base_url?: string | undefined
  /** Absent: a stored key is kept. */
  readonly api_key?: string | undefined
  /** The server takes no key. */
  readonly auth?: 'none' | undefined
  /** Where a refresh finds it again. */
  readonly source?: { readonly kind: 'apiJson'; readonly url: string; readonly api_key?: string } | undefined
  readonly models: readonly FoundModel[]
}

/** What a provider said to one question. */
export type Probed =
  | { readonly ok: true; readonly models: number }
  | { readonly ok: false; readonly problem: string; readonly refused: boolean; readonly offline: boolean }

/** For packs that bring providers along. */
export interface Providers {
  /**
   * Writes providers with their aliases in one save and answers them as the API shows them, and how many aliases are theirs. `registry`: URL
   * that they all come from; other providers of that source are removed. Sets the default model when there is none. Throws ProviderManaged
   * (40003), 40001 when the configuration cannot be saved.
   */
  importAll(
    providers: readonly ImportedProvider[],
    options?: { readonly registry?: string }
  ): Promise<{ readonly providers: ProviderItem[]; readonly models_imported: number }>
  /** Ids of all configured providers. */
  ids(): readonly string[]
  /**
   * Asks a provider once for its models, with its credential; changes nothing. Never rejects for what the provider does: `problem` is a
   * text without secrets, `refused` tells that it did not take the credential, `offline` that nothing was sent.
   */
  probe(id: string, signal: AbortSignal): Promise<Probed>
  /** Key of an earlier import of this registry, by the file as it is now. */
  registryKey(url: string): Promise<string | undefined>
}

/** Of the providers pack. */
export const Providers = serviceToken<Providers>('providers')
