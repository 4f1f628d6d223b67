/** Files of beats: each server of the home writes its own again and again, so that the others see that it does not stand still. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ProcessIdentity, readIfThere, stateOf } from '../../kernel/index.ts'

/** A beat file: its number in so many digits, then whose it is. */
export const countLength = 12
/** Of a server that this one cannot see: nobody stands still for so long with a lease. */
const forgottenMs = 24 * 60 * 60 * 1000

/** Removes what servers that are gone without a goodbye left of their beats. */
export async function sweepBeats(dir: string, own: string): Promise<void> {
  // The beat, which says whose both are, goes last.
  for (const name of (await readdir(dir)).sort().reverse()) {
    const [server_id = ''] = name.split('.')
    if (server_id === own || !(await isLeft(join(dir, server_id), join(dir, name)))) continue
    await rm(join(dir, name), { force: true })
  }
}

async function isLeft(beat: string, file: string): Promise<boolean> {
  const state = await stateOfBeat((await readIfThere(beat))?.slice(countLength) ?? '')
  if (state !== 'elsewhere') return state === 'gone'
  return await stat(file).then(
    ({ mtimeMs }) => Date.now() - mtimeMs > forgottenMs,
    () => false // somebody else removed it
  )
}

function stateOfBeat(identity: string): ReturnType<typeof stateOf> | 'elsewhere' {
  try {
    return stateOf(JSON.parse(identity) as ProcessIdentity)
  } catch {
    return 'elsewhere' // of an older version, or half written
  }
}
