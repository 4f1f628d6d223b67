/** The region that the home says it belongs to. */
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type Region, regions } from './contract.ts'

/**
 * Region that the marker file `<home>/region` names; undefined without a usable one, or with `SVC_CODE_REGION_MARKER=off`. One small read
 * in place.
 */
export function markedRegion(home: string, env: NodeJS.ProcessEnv): Region | undefined {
  if (env.SVC_CODE_REGION_MARKER?.trim().toLowerCase() === 'off') return undefined
  try {
    const text = smallText(join(home, 'region')).trim()
    return regions.find(region => region === text)
  } catch {
    return undefined // no marker, or none that can be read: the default counts
  }
}

/** Content of a small file; of a larger one nothing. Read in place, so no pipe may hold it up. */
function smallText(path: string): string {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const bytes = Buffer.alloc(256)
    const count = readSync(file, bytes)
    return count < bytes.length ? bytes.toString('utf8', 0, count) : ''
  } finally {
    closeSync(file)
  }
}
