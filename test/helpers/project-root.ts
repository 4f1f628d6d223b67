/** Where the project lies, seen from the compiled tests as well as from their sources. */
import { existsSync } from 'node:fs'

function find(): URL {
  for (const up of ['../../', '../../../']) {
    const url = new URL(up, import.meta.url)
    if (existsSync(new URL('package.json', url))) return url
  }
  throw new Error('there is no package.json above the tests')
}

/** URL of the directory that holds package.json; ends with a slash. */
export const projectRoot = find()
