/** Files below a directory that this process has open. */
import { readdir, readlink } from 'node:fs/promises'

/** Their number (Linux); 0 where the system does not tell. */
export async function openFiles(dir: string): Promise<number> {
  const descriptors = await readdir('/proc/self/fd').catch(() => [])
  const targets = await Promise.all(descriptors.map(name => readlink(`/proc/self/fd/${name}`).catch(() => '')))
  return targets.filter(target => target.startsWith(dir)).length
}
