/** Files and directories that are held open: the path that leads to what is held, whatever became of its name. On Linux only. */
import { readlinkSync } from 'node:fs'

/** Names a path and opens nothing, so that devices and pipes do nothing. Node has no name for it. */
export const O_PATH = 0o10000000

/** Where this process is in /proc: by its id, which is quicker, unless /proc counts ids of another namespace, where `self` alone is right. */
const own = process.platform === 'linux' ? ownDirectory() : undefined

export const canHold = own !== undefined

export const heldAt = (fd: number): string => `${own}/fd/${fd}`

function ownDirectory(): string | undefined {
  try {
    return readlinkSync('/proc/self') === String(process.pid) ? `/proc/${process.pid}` : '/proc/self'
  } catch {
    return undefined // no /proc
  }
}
