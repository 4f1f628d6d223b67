/** Path templates: what a declared path means, and in which order paths are tried. */
import { developerError } from '../errors.ts'

export interface Template {
  /** Shape per segment: literal text, `{}` for one segment, `{+}` for the rest of the path. */
  readonly shape: readonly string[]
  /** Parameter names in order of appearance. */
  readonly names: readonly string[]
  /** Action of the last segment (`{id}:fork`). */
  readonly action: string | undefined
}

const parameter = /^\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}(?::([A-Za-z0-9_-]+))?$/

/** Throws a developer error naming the path when the template is not one that `RouteSpec.path` describes. */
export function parseTemplate(path: string): Template {
  const wrong = (why: string) => developerError('route_unusable', `path ${path}`, why)
  if (!path.startsWith('/')) throw wrong('must begin with /')
  const segments = path.slice(1).split('/')
  const shape: string[] = []
  const names: string[] = []
  let action: string | undefined
  for (const [index, segment] of segments.entries()) {
    const match = parameter.exec(segment)
    if (!match) {
      if (segment === '' && path !== '/') throw wrong('has an empty segment or a trailing slash')
      if (/[{}?#%\s]/.test(segment)) throw wrong(`segment '${segment}' is neither literal text nor {name}, {name}:action, {+name}`)
      shape.push(segment)
      continue
    }
    const [, plus, name, tail] = match
    if ((plus || tail) && index !== segments.length - 1) throw wrong('a long tail or an action is only possible in the last segment')
    if (names.includes(name!)) throw wrong(`names the parameter '${name}' twice`)
    names.push(name!)
    shape.push(plus ? '{+}' : '{}')
    action = tail
  }
  return { shape, names, action }
}

/** Matches raw paths, case-sensitively and without a trailing slash. One unnamed group per parameter. */
export function patternOf(shape: readonly string[]): RegExp {
  const parts = shape.map(part => (part === '{}' ? '([^/]+)' : part === '{+}' ? '(.*)' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
  return new RegExp(`^/${parts.join('/')}$`)
}

/** Literals before parameters before long tails, segment by segment, so the order of registration never matters. */
export function compareShapes(a: readonly string[], b: readonly string[]): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = rank(a[i]!) - rank(b[i]!)
    if (difference !== 0) return difference
    if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1
  }
  return 0 // of two that agree so far no path fits both
}

function rank(part: string): number {
  return part === '{}' ? 1 : part === '{+}' ? 2 : 0
}
