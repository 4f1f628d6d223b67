/** Where a model is found: below the host of an API, or below project and region of a cloud. */
import type { ResolvedModel } from '../llm/index.ts'
import { cloudHost, publisher, versions } from './names.ts'

/** What says where a model is. A key file may name the project as well. */
type Located = Pick<ResolvedModel, 'project' | 'location' | 'base_url'> & { readonly key_file?: string | undefined }

/** How one protocol addresses models. */
export interface Endpoint {
  readonly protocol: 'compat_genai' | 'compat_cloud'
  /** Path of the model below its base URL. */
  path(model: ResolvedModel): string
  /** The URL that is called. */
  baseUrl?(base_url: string | undefined, location: string | undefined): string | undefined
  /** Path of the model list below the base URL; absent: as other protocols have it. */
  models?(base_url: string): string
  /** What is not configured, as a short sentence. */
  missing?(model: Located): string | undefined
}

const versioned = /\/v\d+(alpha|beta)?\d*$/
const placed = /\/projects\/[^/]+\/locations\/[^/]+/

/** Below the host alone. */
export const genai: Endpoint = {
  protocol: 'compat_genai',
  path: model => {
    const { name } = model
    const below = /^(models|tunedModels)\//.test(name) ? escaped(name) : `models/${encodeURIComponent(name)}`
    return `${versioned.test(pathOf(model)) ? '' : `/${versions.genai}`}/${below}`
  },
  models: base_url => `${versioned.test(pathOf({ base_url })) ? '' : `/${versions.genai}`}/models?pageSize=1000`
}

/** Below project and location. */
export const cloud: Endpoint = {
  protocol: 'compat_cloud',
  path: model => {
    const { name, project = '' } = model
    const path = pathOf(model)
    if (path.includes('/publishers/')) return `/models/${encodeURIComponent(name)}`
    const below = /^(publishers|endpoints)\//.test(name) ? escaped(name) : `publishers/${publisher}/models/${encodeURIComponent(name)}`
    if (placed.test(path)) return `/${below}`
    const where = `projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(locationOf(model) ?? '')}`
    return `${versioned.test(path) ? '' : `/${versions.cloud}`}/${where}/${below}`
  },
  baseUrl: (base_url, location) => {
    if (base_url === undefined) return location && `https://${regionalHost(location)}`
    // The host without a region serves the location `global` only.
    if (!location || !URL.canParse(base_url) || new URL(base_url).hostname !== cloudHost) return base_url
    const url = new URL(base_url)
    url.hostname = regionalHost(location)
    return url.href
  },
  missing: model => {
    const path = pathOf(model)
    if (path.includes('/publishers/') || placed.test(path)) return undefined
    const lacks = [model.project || model.key_file ? [] : ['PROJECT'], locationOf(model) ? [] : ['LOCATION']].flat()
    return lacks.length === 0 ? undefined : `its env table names no ${lacks.join(' and no ')}`
  }
}

/** `global` has no region in front of its host. */
const regionalHost = (location: string): string => (location === 'global' ? cloudHost : `${encodeURIComponent(location)}-${cloudHost}`)

/** Configured, else the region in front of the host name; the host without one is `global`. */
function locationOf({ location, base_url = '' }: Located): string | undefined {
  if (location || !URL.canParse(base_url)) return location
  const { hostname } = new URL(base_url)
  return hostname === cloudHost ? 'global' : /^([a-z]+-[a-z]+\d+)-/.exec(hostname)?.[1]
}

function pathOf({ base_url = '' }: Pick<ResolvedModel, 'base_url'>): string {
  return URL.canParse(base_url) ? new URL(base_url).pathname.replace(/\/+$/, '') : ''
}

const escaped = (name: string): string => name.split('/').map(encodeURIComponent).join('/')
