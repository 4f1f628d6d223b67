/** Where plugins are staged, by whom: what a process left that died in an install goes when a server starts. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAbandoned, temporaryName } from '../../kernel/index.ts'

const stagingIn = (dir: string) => join(dir, 'staging')

/** A place for one install. */
export const stagingPlace = async (dir: string): Promise<string> => join(stagingIn(dir), await temporaryName())

export async function sweepStaging(dir: string): Promise<void> {
  const names: string[] = await readdir(stagingIn(dir)).catch(() => []) // nothing was ever installed
  for (const name of names) {
    const place = join(stagingIn(dir), name)
    if (await isAbandoned(place)) await rm(place, { recursive: true, force: true })
  }
}
