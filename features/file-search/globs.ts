/** Globs that pick paths, as ripgrep reads them. */
import { compilePathGlob } from '../tools/index.ts'

/** A glob: without a slash it matches names at any depth. */
export function globOf(pattern: string): (path: string) => boolean {
  const clean = pattern.replace(/^\.?\//, '').replace(/(?<=[^/])\/+$/, '')
  const fits = compilePathGlob(clean)
  return clean.includes('/') ? fits : path => fits(path.slice(path.lastIndexOf('/') + 1))
}

/** Whether one of the globs fits a path, or a directory on the way to it. */
export function anyGlob(patterns: readonly string[]): (path: string) => boolean {
  const globs = patterns.map(globOf)
  if (globs.length === 0) return () => false
  return path => {
    for (let end = path.indexOf('/'); ; end = path.indexOf('/', end + 1)) {
      const part = end < 0 ? path : path.slice(0, end)
      if (globs.some(fits => fits(part))) return true
      if (end < 0) return false
    }
  }
}

/** Globs that end in `*.ending` mean files; what they say about the name alone. Empty unless all of them are of this kind. */
export function endingGlobs(patterns: readonly string[] = []): string[] {
  const endings = patterns.map(pattern => /(?:^|\/)(\*\.[\w.*?{},[\]-]+)$/.exec(pattern)?.[1])
  return endings.every((ending): ending is string => ending !== undefined) ? endings : []
}

/** Whether a path fits one of the globs to include, if there are any. */
export function included({ include = [] }: { readonly include?: readonly string[] }): (path: string) => boolean {
  if (include.length === 0) return () => true
  const files = endingGlobs(include).length > 0 ? include.map(globOf) : undefined
  return files ? path => files.some(fits => fits(path)) : anyGlob(include)
}
