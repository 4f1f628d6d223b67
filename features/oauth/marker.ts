/** The region marker of the home directory: a file that says where the installation belongs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Region, regions } from './contract.ts'

/** Region that `<home>/region` names; undefined without a usable one, or with `SVC_CODE_REGION_MARKER=off`. One small read in place. */
export function markedRegion(home: string, env: NodeJS.ProcessEnv): Region | undefined {
  if (env.SVC_CODE_REGION_MARKER?.trim().toLowerCase() === 'off') return undefined
  try {
    const text = readFileSync(join(home, 'region'), 'utf8').trim()
    return regions.find(region => region === text)
  } catch {
    return undefined // no marker, or none that can be read: the default counts
  }
}
