/** What the server knows of a pack that runs in a process of its own: its declaration, without its code. */
import type { Pack, ServiceToken } from '../../../kernel/index.ts'

type Tokens = Readonly<Record<string, string>>

export interface PackFacts extends Pick<Pack, 'name' | 'version' | 'description' | 'area' | 'config' | 'errors' | 'source'> {
  readonly needs: Tokens
  readonly optional: Tokens
  readonly provides: readonly Pick<ServiceToken<unknown>, 'id' | 'listening'>[]
  /** Why it cannot run. */
  readonly broken?: string | undefined
}

export function factsOf(pack: Pack): PackFacts {
  const { name, version, description, area, config, errors, source, needs, optional, provides, broken } = pack
  const ids = (tokens: Pack['needs']) => Object.fromEntries(Object.entries(tokens).map(([key, { id }]) => [key, id]))
  return {
    name,
    version,
    description,
    area,
    config,
    errors,
    source,
    needs: ids(needs),
    optional: ids(optional),
    provides: provides.map(({ id, listening }) => ({ id, listening })),
    broken: broken?.message
  }
}
