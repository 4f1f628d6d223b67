/** Services of the default packs are theirs: another pack provides one only where the operator names it in `[packs.replace]`. */
import type { Pack } from '../../kernel/index.ts'
import type { Deployment } from './deployment.ts'
import { failedPack, originOf } from './load-pack.ts'

/**
 * The packs of third parties. One that provides a service of a default pack without being named for it is among them as a pack that fails
 * with the reason. `defaults` load the default packs, which happens only when it is needed.
 * Throws when an entry of `replace` (pack by service id) names a service of no default pack, or a pack that does not provide it.
 */
export async function checkReplacements(
  packs: readonly Pack[],
  { replace: named, disable }: Pick<Deployment, 'replace' | 'disable'>,
  defaults: readonly (() => Promise<Pack>)[]
): Promise<Pack[]> {
  if (Object.keys(named).length === 0 && packs.every(pack => pack.provides.length === 0)) return [...packs]
  const owners = new Map<string, string>()
  for (const pack of await Promise.all(defaults.map(load => load()))) for (const { id } of pack.provides) owners.set(id, pack.name)
  for (const [id, name] of Object.entries(named)) {
    if (!owners.has(id)) throw new Error(`packs.replace.${id} in config.toml: no default pack provides '${id}'`)
    const provides = packs.some(pack => pack.name === name && pack.provides.some(token => token.id === id))
    if (!provides) throw new Error(`packs.replace.${id} in config.toml: no loaded pack '${name}' provides '${id}'`)
  }
  return packs.map(pack => {
    const isMeant = (id: string, owner: string) => named[id] === pack.name && disable.includes(owner)
    for (const { id } of pack.provides) {
      const owner = owners.get(id)
      if (owner !== undefined && !isMeant(id, owner)) {
        return failedPack(pack.name, new Error(`it provides '${id}' in place of ${owner}; ${hint(id, pack.name, owner)}`), originOf(pack))
      }
    }
    return pack
  })
}

function hint(id: string, name: string, owner: string): string {
  const key = /^[\w-]+$/.test(id) ? id : JSON.stringify(id)
  return `where that is meant, config.toml says so: [packs] disable = ["${owner}"] and [packs.replace] ${key} = ${JSON.stringify(name)}`
}
