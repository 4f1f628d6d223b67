/** The catalog of plugins: fetched when it is asked for, merged with what is installed and with what this server brings itself. */
import { isAbsolute } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { AppError, aFewAtOnce, checker, InternalError, oneOf, problems, readBounded, type Static, Type } from '../../kernel/index.ts'
import type { MarketplaceEntry } from './contract.ts'
import { type DownloadPorts, fetchText, newestRelease } from './download.ts'
import type { InstalledPlugin, MarketplaceRows } from './service.ts'
import { placeOf } from './source.ts'

const text = Type.String()
const optional = Type.Optional(text)
const Row = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    displayName: optional,
    name: optional,
    source: optional,
    url: optional,
    downloadUrl: optional,
    tier: Type.Optional(oneOf(['official', 'curated', 'third-party'])),
    type: Type.Optional(Type.Union([Type.Literal('plugin'), Type.Literal('managed'), Type.Literal('guide')])),
    version: optional,
    description: optional,
    shortDescription: optional,
    homepage: optional,
    websiteURL: optional,
    keywords: Type.Optional(Type.Array(text))
  },
  { additionalProperties: true }
)
const Catalog = Type.Object({ version: Type.Optional(Type.Unknown()), plugins: Type.Array(Row) }, { additionalProperties: true })
type Row = Static<typeof Row>

const catalogBytes = 4 * 1024 * 1024
/** Releases are looked up for so many entries without a version. */
const maxLookups = 50
const lookupsAtOnce = 6

export interface MarketplacePorts extends DownloadPorts {
  readonly hosts: readonly string[]
  /** http(s), file URL or absolute path; undefined: there is no catalog but that of this server. */
  readonly location: string | undefined
  readonly installed: readonly InstalledPlugin[]
  readonly own: ReturnType<MarketplaceRows['rows']>
}

/** Throws InternalError (50001) when the catalog cannot be had or is none. */
export async function marketplace(ports: MarketplacePorts): Promise<MarketplaceEntry[]> {
  const rows = ports.location === undefined ? [] : await readCatalog(ports.location, ports)
  const { own } = ports
  const listed = rows.flatMap((row): MarketplaceEntry[] => {
    const capability = own.find(each => each.capabilityId === row.id || each.pluginId === row.id)
    if (capability && !capability.supported) return []
    return [{ ...row, capabilityId: capability?.capabilityId }]
  })
  // Of a deployment's own catalog the operator decides what is in it.
  const missing = ports.location === undefined ? own.filter(each => each.supported) : []
  const added = missing.map(
    ({ id, displayName, description, capabilityId }): MarketplaceEntry => ({
      id,
      tier: 'official',
      displayName,
      description,
      source: `capability:${capabilityId}`,
      capabilityId
    })
  )
  const semver = await import('semver')
  return [...listed, ...added].map(entry => {
    const installed = ports.installed.find(
      each => each.id === (own.find(row => row.capabilityId === entry.capabilityId)?.pluginId ?? entry.id)
    )
    if (!installed) return entry
    const { version, enabled } = installed
    const newer = semver.valid(entry.version) && semver.valid(version) && semver.gt(entry.version ?? '', version ?? '')
    return { ...entry, installed: { version, enabled }, updateAvailable: newer || undefined }
  })
}

async function readCatalog(location: string, ports: MarketplacePorts): Promise<MarketplaceEntry[]> {
  const failed = (why: string, cause?: unknown) => new AppError(InternalError, { message: `the plugin marketplace ${why}`, cause })
  const base = isAbsolute(location) ? pathToFileURL(location).href : location
  if (!/^(?:https?|file):/.test(base) || !URL.canParse(base)) throw failed('has an address that is none')
  const content = await contentOf(base, ports).catch((error: unknown) => {
    throw failed(`cannot be reached: ${(error as Error).message}`, error)
  })
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch (error) {
    throw failed('is no JSON', error)
  }
  const check = checker(Catalog)
  if (!check.Check(value)) {
    const [first] = problems(Catalog, value)
    throw failed(`is no catalog: ${`${first?.path ?? ''} ${first?.message ?? ''}`.trim()}`)
  }
  const entries = value.plugins.map(row => {
    const entry = entryOf(row, base)
    if (!entry) throw failed(`is no catalog: ${row.id} has no source`)
    return entry
  })
  return await withVersions(entries, ports)
}

async function contentOf(base: string, ports: MarketplacePorts): Promise<string> {
  if (!base.startsWith('file:')) return await fetchText(base, ports, catalogBytes)
  return (await readBounded(fileURLToPath(base), catalogBytes, 'it')).toString()
}

function entryOf(row: Row, base: string): MarketplaceEntry | undefined {
  const written = row.source ?? row.url ?? row.downloadUrl
  if (written === undefined || written.trim() === '') return undefined
  return {
    id: row.id,
    tier: row.tier ?? 'third-party',
    displayName: row.displayName ?? row.name ?? row.id,
    description: row.description ?? row.shortDescription,
    homepage: row.homepage ?? row.websiteURL,
    keywords: row.keywords,
    version: row.version,
    source: resolved(written.trim(), base)
  }
}

/** As `POST /plugins` takes it. */
function resolved(source: string, base: string): string {
  if (/^(?:https?|capability):/.test(source) || isAbsolute(source) || !URL.canParse(source, base)) return source
  const url = new URL(source, base)
  if (url.protocol !== 'file:') return url.href
  try {
    return fileURLToPath(url)
  } catch {
    return source // on another machine: installing it will say why
  }
}

/** A version that the catalog does not name is that of the pinned tag, or of the newest release. */
async function withVersions(entries: readonly MarketplaceEntry[], ports: MarketplacePorts): Promise<MarketplaceEntry[]> {
  const found = [...entries]
  const unpinned: { readonly at: number; readonly base: string }[] = []
  for (const [at, entry] of entries.entries()) {
    if (entry.version !== undefined || !/^https?:/.test(entry.source)) continue
    const place = placed(entry.source, ports.hosts)
    if (place?.kind !== 'repo') continue
    if (place.ref) found[at] = { ...entry, version: versionOf(place.ref.value) }
    else if (unpinned.length < maxLookups) unpinned.push({ at, base: place.base })
  }
  await aFewAtOnce(unpinned, lookupsAtOnce, async ({ at, base }) => {
    const tag = await newestRelease(base, ports).catch(() => undefined) // the entry is there, without a version
    const entry = found[at]
    if (entry && tag !== undefined) found[at] = { ...entry, version: versionOf(tag) }
  })
  return found
}

function placed(source: string, hosts: readonly string[]) {
  try {
    return placeOf(source, hosts)
  } catch {
    return undefined // installing it will say why
  }
}

function versionOf(ref: string): string | undefined {
  return /(?:^|[/@-])v?(\d+\.\d+\.\d+[\w.+-]*)$/.exec(ref)?.[1]
}
