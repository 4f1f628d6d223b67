/** Wires the catalog pack: the model directory and the two imports. */
import { AppError, definePack, headOf, invalid, KernelInfo } from '../../kernel/index.ts'
import { isHeaderValue, notAHeaderValue } from '../config/index.ts'
import { createUpstream, isHttpUrl, isLoopback, nonBlank, notAnAddress, OutboundHosts } from '../llm/index.ts'
import { FetchProblem, fetchJson, isProviderId, Providers, readRegistry } from '../providers/index.ts'
import {
  DirectoryUnavailable,
  EntryMissing,
  importCatalog,
  importRegistry,
  listCatalog,
  NotImportable,
  Options,
  RegistryUnusable,
  readCatalogEntry
} from './contract.ts'
import { DIRECTORY_LIMIT_BYTES, Directory, directoryUrl } from './directory.ts'
import { endpoint, type ResolvedEntry, resolveDirectory } from './resolve.ts'

export default definePack({
  name: 'catalog',
  description: 'The model directory, and imports from it or from a private registry',
  area: 'Models',
  needs: { providers: Providers, info: KernelInfo },
  config: Options,
  setup(ctx, { providers, info }) {
    const { signal, log } = ctx
    const { snapshot, patience_ms, timeout_ms: ms } = ctx.config
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    const agent = { 'user-agent': `svc-code/${info.version}` }
    const url = directoryUrl(process.env, ctx.config.directory)
    const live = async (from: string) =>
      resolveDirectory(await fetchJson(upstream, from, agent, signal, { bytes: DIRECTORY_LIMIT_BYTES, ms }))
    const directory = new Directory({
      fetch: url === undefined ? undefined : () => live(url),
      snapshot: snapshot ? async () => resolveDirectory(JSON.parse((await import('./snapshot.ts')).snapshot)) : undefined,
      now: ctx.now,
      patience_ms,
      onFailure: error => {
        if (signal.aborted) return
        const reason = error instanceof FetchProblem ? error.message : 'its answer cannot be read'
        log.warn({ reason }, 'the live model directory is not available; an older answer or the built-in one serves')
      }
    })
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () => [
        ...(url === undefined ? [] : [{ url, why: 'the model directory', when: 'a client asks for it, once in ten minutes' }]),
        { why: 'a private registry', when: 'an import names it' }
      ]
    })
    const unavailable = (cause: unknown) => {
      throw new AppError(DirectoryUnavailable, { cause })
    }
    async function entry(id: string): Promise<ResolvedEntry> {
      const found = await directory.find(id).catch(unavailable)
      if (!found) throw new AppError(EntryMissing, { message: `the model directory has no entry ${id}` })
      return found
    }

    ctx.route(listCatalog, async () => {
      const entries = await directory.get().catch(unavailable)
      return { items: [...entries.values()].map(({ shown }) => shown) }
    })
    ctx.route(readCatalogEntry, async ({ params: { catalog_id } }) => (await entry(catalog_id)).shown)
    ctx.route(importCatalog, async ({ body: { catalog_id, id = catalog_id, api_key, base_url } }) => {
      checkKey(api_key)
      const found = await entry(catalog_id)
      const { shown, models } = found
      const type = shown.wire_type
      if (type === null) throw refused(catalog_id, shown.reject_reason ?? 'rejected')
      const url = base_url === undefined ? found.base_url : chosenUrl(catalog_id, base_url.trim(), type)
      if (url === undefined && shown.needs_base_url) throw refused(catalog_id, 'needs-base-url')
      if (models.length === 0) throw refused(catalog_id, 'no-importable-models')
      if (!isProviderId(id)) throw refused(catalog_id, 'unusable-id')
      // A server on this machine whose entry names no variable for a key takes none.
      const auth = shown.env_key === null && isLoopback(url) ? 'none' : undefined
      const { providers: items, models_imported } = await providers.importAll([{ id, type, base_url: url, api_key, auth, models }])
      return { provider: items[0]!, models_imported }
    })
    ctx.route(importRegistry, async ({ body: { url: given, api_key }, signal }) => {
      checkKey(api_key)
      const url = given.trim()
      const key = nonBlank(api_key) ?? (api_key === undefined ? await providers.registryKey(url) : undefined)
      const listed = await fetchJson(upstream, url, { ...agent, ...(key && { authorization: `Bearer ${key}` }) }, signal, { ms })
        .then(readRegistry)
        .catch((error: unknown) => {
          if (!(error instanceof FetchProblem)) throw error
          throw new AppError(RegistryUnusable, { message: headOf(`registry ${shownAddress(url)}: ${error.message}`, 300), cause: error })
        })
      const source = { kind: 'apiJson' as const, url, ...(key && { api_key: key }) }
      const imported = listed.map(({ id, type, base_url, models }) => ({ id, type, base_url, api_key: key, source, models }))
      return providers.importAll(imported, { registry: url })
    })
  }
})

function checkKey(api_key = ''): void {
  if (!isHeaderValue(api_key)) throw invalid([{ path: 'body.api_key', message: notAHeaderValue }])
}

function refused(catalog_id: string, reason: string): AppError {
  return new AppError(NotImportable, { message: `entry ${catalog_id} cannot be imported: ${reason}`, details: { reason } })
}

/** A base_url that the request brings. */
function chosenUrl(catalog_id: string, base_url: string, type: string): string {
  if (base_url === '') throw refused(catalog_id, 'empty-base-url')
  const url = endpoint(base_url, type)
  if (url === undefined) throw refused(catalog_id, 'placeholder-base-url')
  if (!isHttpUrl(url)) throw invalid([{ path: 'body.base_url', message: notAnAddress }])
  return url
}

/** Origin and path: user names, keys in queries and fragments stay inside. */
function shownAddress(url: string): string {
  if (!URL.canParse(url)) return 'at this address'
  const { origin, pathname } = new URL(url)
  return origin === 'null' ? 'at this address' : origin + pathname
}
