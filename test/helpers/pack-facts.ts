/** What a pack's documentation must name, in the spelling of the wire. */
import type { Pack } from '../../kernel/index.ts'
import type { Declared } from './declared.ts'

/** `GET /api/v1/...` of each route, without the mark of a long tail. */
export function routesOf(declared: Declared): string[] {
  return declared.routes.map(route => `${route.method} ${route.path.replace('{+', '{')}`)
}

/** Types of events and of frames in both directions. */
export function typesOf(declared: Declared): string[] {
  return [...declared.events, ...declared.frames, ...declared.outFrames].map(spec => spec.type)
}

/** Names of the deployment options. */
export function optionsOf(pack: Pack): string[] {
  return Object.keys(pack.config?.properties ?? {})
}

/** Facts that the README does not name. Each stands in backticks of its own. */
export function missingIn(readme: string, pack: Pack, declared: Declared): string[] {
  const named = new Set([...readme.matchAll(/`([^`]+)`/g)].map(match => (match[1] ?? '').replace(/\s+/g, ' ')))
  return [...routesOf(declared), ...typesOf(declared), ...optionsOf(pack)].filter(fact => !named.has(fact))
}
