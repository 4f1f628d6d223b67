/** What is told of the installation: the product version (that of package.json), and how the command line is called. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The nearest package.json above this file (the sources or the compiled output). */
const manifest = () => ['../../package.json', '../../../package.json'].map(up => new URL(up, import.meta.url)).find(url => existsSync(url))

export function productVersion(): string {
  const url = manifest()
  return url === undefined ? '0.0.0' : (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version
}

/** The directory of this installation. */
export function ownDirectory(): string {
  return fileURLToPath(new URL('.', manifest()))
}

/** How this command line is called where it was started: by `npm start`, in a checkout, or installed. */
export function ownCommand(env: NodeJS.ProcessEnv): string {
  if (env.npm_lifecycle_event === 'start') return 'npm start --'
  return import.meta.url.includes('/node_modules/') ? 'svc-code' : 'npx svc-code'
}
