/** Checks the deployment options of a pack against its schema and fills in defaults. */

import { tidy } from '../clean.ts'
import type { Pack } from '../pack.ts'
import { problems } from '../schema.ts'

/** Throws with the offending fields named; the pack then fails. */
export function deploymentConfig(pack: Pack, given: unknown): unknown {
  const unknown = Object.keys(given ?? {}).filter(key => !(pack.config && Object.hasOwn(pack.config.properties, key)))
  if (unknown.length > 0) {
    const known = Object.keys(pack.config?.properties ?? {}).join(', ') || 'none'
    throw new Error(`bad deployment config for pack ${pack.name}: unknown ${unknown.join(', ')} (known: ${known})`)
  }
  if (!pack.config) return {}
  const value = tidy(pack.config, structuredClone(given ?? {}))
  const details = problems(pack.config, value)
  if (details.length === 0) return value
  const text = details.map(detail => `${detail.path || 'config'}: ${detail.message}`).join('; ')
  throw new Error(`bad deployment config for pack ${pack.name}: ${text}`)
}
