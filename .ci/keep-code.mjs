/** Starts the bundled server once on a home of its own and keeps the code that V8 made of it, beside the bundle. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const { load, keepCode } = createRequire(import.meta.url)('../dist/bundle/load.js')
const home = mkdtempSync(join(tmpdir(), 'svc-code-build-'))
process.on('exit', () => rmSync(home, { recursive: true, force: true, maxRetries: 3 }))

process.env.SVC_CODE_HOME = home
process.env.SVC_CODE_CATALOG_URL = 'off'
process.argv = [process.execPath, 'svc-code', '--port', '0']
process.stdout.write = text => {
  if (/listening on/.test(text)) {
    keepCode()
    process.kill(process.pid, 'SIGTERM')
  }
  return true
}
load('cli.js')
