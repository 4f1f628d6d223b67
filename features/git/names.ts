/** Names of files between git and the system: how many a program takes, and when two spellings mean one file. */
import { canHold } from '../file-search/index.ts'

/** A program takes so much at its start; Windows 32,767 characters with everything around them. */
export const namesChars = (platform: NodeJS.Platform): number => (platform === 'win32' ? 24 : 256) * 1024

/** The names that a program takes together, from the first on. */
export function taken(names: Iterable<string>, most: number = namesChars(process.platform)): string[] {
  const fitting: string[] = []
  let chars = 0
  for (const name of names) {
    chars += name.length
    if (chars > most) break
    fitting.push(name)
  }
  return fitting
}

/**
 * Whether a path with its links resolved is what git means. Systems that cannot hold files may keep a name in another case, or composed
 * otherwise, than git has it in its index; `exact`: this one keeps them as they are.
 */
export function isSamePlace(real: string, place: string, exact: boolean = canHold): boolean {
  return real === place || (!exact && spelled(real) === spelled(place))
}

const spelled = (path: string) => path.normalize('NFC').toLowerCase()
