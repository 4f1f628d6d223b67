/** Limits of this process that are too small to run: they show in many odd ways, so they are looked at first. */
import { readFileSync } from 'node:fs'

/** The modules and databases of a start hold some 150 at once. */
const neededFiles = 256
/** V8 takes 10 GiB of addresses, not of memory, for WebAssembly alone, of which the client of HTTP consists. */
const neededSpace = 16 * 1024 ** 3

/** Throws with the limit and the remedy. Where the system does not tell its limits (no /proc), nothing is known beforehand. */
export function assertLimits(): void {
  if ((limit('open files') ?? neededFiles) < neededFiles) throw new Error(tooFewDescriptors())
  const space = limit('address space') ?? neededSpace
  if (space >= neededSpace) return
  const [now, needed] = [space, neededSpace].map(bytes => `${Math.floor((bytes / 1024 ** 3) * 10) / 10} GiB`)
  throw new Error(`too little address space (limit ${now}): at least ${needed} are needed; raise the limit with ulimit -v`)
}

export function tooFewDescriptors(): string {
  const now = limit('open files')
  return `too few file descriptors${now === undefined ? '' : ` (limit ${now})`}: at least ${neededFiles} are needed; raise the limit with ulimit -n`
}

/** Soft limit of this process; undefined when it is not known or there is none. */
function limit(what: string): number | undefined {
  try {
    const found = new RegExp(`^Max ${what}\\s+(\\d+)`, 'm').exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return found === undefined ? undefined : Number(found)
  } catch {
    return undefined // only Linux has the file
  }
}
