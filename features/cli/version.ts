/** The product version: the one of package.json. */
import { existsSync, readFileSync } from 'node:fs'

/** Reads it from the nearest package.json above this file (the sources or the compiled output). */
export function productVersion(): string {
  for (const up of ['../../package.json', '../../../package.json']) {
    const url = new URL(up, import.meta.url)
    if (existsSync(url)) return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version
  }
  return '0.0.0'
}
