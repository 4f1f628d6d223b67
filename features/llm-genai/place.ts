/** Where a model is found: below the host of an API, or below project and region of a cloud. */
import type { ResolvedModel } from '../llm/index.ts'
import { publisher, versions } from './names.ts'

export interface Place {
  readonly protocol: 'compat_genai' | 'compat_cloud'
  /** Path of the model below its base URL. */
  path(model: ResolvedModel): string
  /** What is not configured, as a short sentence. */
  missing?(model: ResolvedModel): string | undefined
}

const versioned = /\/v\d+(alpha|beta)?\d*$/
const placed = /\/projects\/[^/]+\/locations\/[^/]+/

export const genai: Place = {
  protocol: 'compat_genai',
  path: model => {
    const { name } = model
    const below = /^(models|tunedModels)\//.test(name) ? escaped(name) : `models/${encodeURIComponent(name)}`
    return `${versioned.test(pathOf(model)) ? '' : `/${versions.genai}`}/${below}`
  }
}

export const cloud: Place = {
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
  missing: model => {
    const path = pathOf(model)
    if (path.includes('/publishers/') || placed.test(path)) return undefined
    const lacks = [model.project ? [] : ['PROJECT'], locationOf(model) ? [] : ['LOCATION']].flat()
    return lacks.length === 0 ? undefined : `its env table names no ${lacks.join(' and no ')}`
  }
}

/** Configured, else the region in front of the host name. */
function locationOf({ location, base_url = '' }: ResolvedModel): string | undefined {
  if (location) return location
  return URL.canParse(base_url) ? /^([a-z]+-[a-z]+\d+)-/.exec(new URL(base_url).hostname)?.[1] : undefined
}

function pathOf({ base_url = '' }: ResolvedModel): string {
  return URL.canParse(base_url) ? new URL(base_url).pathname.replace(/\/+$/, '') : ''
}

const escaped = (name: string): string => name.split('/').map(encodeURIComponent).join('/')
