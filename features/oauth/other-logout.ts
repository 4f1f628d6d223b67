/** Logout of a provider that has a login of its own, set up by hand in the configuration file. */
import type { Config } from '../config/index.ts'
import { modelsSection, providersSection } from '../llm/index.ts'
import { withdrawProvider } from '../providers/index.ts'
import type { Account } from './place.ts'
import type { Vault } from './vault.ts'

export interface OtherLogoutParts {
  readonly config: Pick<Config, 'get' | 'reload' | 'update'>
  readonly vault: Pick<Vault, 'discard'>
  /** The account that a provider logs in with. */
  readonly account: (provider_id: string) => Account | undefined
  /** Credentials of the managed login: they are its own affair. */
  readonly managed: () => readonly string[]
}

/**
 * Discards the credential, unless somebody else uses it as well, and removes the provider with its aliases. Providers without a login are
 * left alone. Throws 40001 when the configuration cannot be saved.
 */
export async function logoutOther(provider_id: string, { config, vault, account, managed }: OtherLogoutParts): Promise<void> {
  await config.reload()
  const providers = config.get(providersSection)
  if (!Object.hasOwn(providers, provider_id) || providers[provider_id]?.oauth === undefined) return
  const slot = account(provider_id)?.slot
  const others = Object.entries(providers).filter(([id]) => id !== provider_id)
  const models = Object.values(config.get(modelsSection)).filter(({ provider }) => provider !== provider_id)
  const used = [...managed(), ...others.map(([, { oauth }]) => oauth?.key), ...models.map(({ oauth }) => oauth?.key)]
  if (slot !== undefined && !used.includes(slot)) await vault.discard(slot)
  await config.update(file => withdrawProvider(file, provider_id))
}
