/** Enough file descriptors to start: a limit that is too small shows in many odd ways, so it is looked at first. */
import { readFileSync } from 'node:fs'

/** The modules and databases of a start hold some 150 at once. */
const needed = 256

/** Throws with the limit and the remedy. Where the system does not tell its limit (no /proc), nothing is known beforehand. */
export function assertDescriptors(): void {
  if ((limit() ?? needed) < needed) throw new Error(tooFewDescriptors())
}

export function tooFewDescriptors(): string {
  const now = limit()
  return `too few file descriptors${now === undefined ? '' : ` (limit ${now})`}: at least ${needed} are needed; raise the limit with ulimit -n`
}

/** Soft limit of this process; undefined when it is not known or there is none. */
function limit(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return found === undefined ? undefined : Number(found)
  } catch {
    return undefined // only Linux has the file
  }
}
