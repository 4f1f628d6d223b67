/** The `env` table of a provider: variables that its own tools would read, found by the end of their names. */
import type { ProviderRecord } from './records.ts'

type Record = Pick<ProviderRecord, 'api_key' | 'base_url' | 'env' | 'type'>

/** Protocols whose access tokens can come from a key file. */
const keyFileProtocols: readonly string[] = ['compat_cloud']

/** Key of a provider: its own, else the entry of its `env` table whose name ends in `API_KEY`, else its token. */
export function providerKey(record: Record): string | undefined {
  return nonBlank(record.api_key) ?? fromEnvTable(record, 'API_KEY') ?? providerToken(record)
}

/** Access token of a provider: the entry of its `env` table whose name ends in `ACCESS_TOKEN`. */
export function providerToken(record: Record): string | undefined {
  return fromEnvTable(record, 'ACCESS_TOKEN')
}

/**
 * Key file of a provider, as a path or as its text: the entry of its `env` table whose name ends in `CREDENTIALS`. Only for protocols that
 * take one.
 */
export function providerKeyFile(record: Record, protocol = record.type): string | undefined {
  return protocol !== undefined && keyFileProtocols.includes(protocol.trim()) ? fromEnvTable(record, 'CREDENTIALS') : undefined
}

/** Cloud project and region: the entries of the `env` table whose names end in `PROJECT` (or `PROJECT_ID`), `LOCATION` (or `REGION`). */
export function providerPlace(record: Record): { project?: string; location?: string } {
  const project = fromEnvTable(record, 'PROJECT') ?? fromEnvTable(record, 'PROJECT_ID')
  const location = fromEnvTable(record, 'LOCATION') ?? fromEnvTable(record, 'REGION')
  return { ...(project && { project }), ...(location && { location }) }
}

/** URL of a provider: its own, else the entry of its `env` table whose name ends in `BASE_URL`. */
export function providerUrl(record: Record): string | undefined {
  return nonBlank(record.base_url) ?? fromEnvTable(record, 'BASE_URL')
}

function fromEnvTable(record: Record, ending: string): string | undefined {
  for (const [name, value] of Object.entries(record.env ?? {})) {
    if (name.toUpperCase().endsWith(ending) && nonBlank(value)) return value.trim()
  }
  return undefined
}

/** The text without blanks around it; undefined for nothing. */
export function nonBlank(value: string | undefined): string | undefined {
  const trimmed = value?.trim()
  return trimmed === '' ? undefined : trimmed
}
