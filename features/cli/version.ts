/** What is told of the installation: the product version (that of package.json), and how the command line is called. */
import { existsSync, readFileSync } from 'node:fs'

/** Reads it from the nearest package.json above this file (the sources or the compiled output). */
export function productVersion(): string {
  for (const up of ['../../package.json', '../../../package.json']) {
    const url = new URL(up, import.meta.url)
    if (existsSync(url)) return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version
  }
  return '0.0.0'
}

/** How this command line is called where it was started: by `npm start`, in a checkout, or installed. */
export function ownCommand(env: NodeJS.ProcessEnv): string {
  if (env.npm_lifecycle_event === 'start') return 'npm start --'
  return import.meta.url.includes('/node_modules/') ? 'svc-code' : 'npx svc-code'
}
