/**
 * Child process of the durability tests: saves once and dies by SIGKILL right before the step with a number, counting whatever changes
 * something on disk. Lives on when there are not so many steps.
 */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

const [home, last] = process.argv.slice(2) as [string, string]
let left = Number.POSITIVE_INFINITY

function step(): void {
  if (--left <= 0) process.kill(process.pid, 'SIGKILL')
}

/** Replaces methods by ones that count. */
function count(target: object, names: readonly string[]): void {
  const methods = target as Record<string, (...args: unknown[]) => unknown>
  for (const name of names) {
    const real = methods[name]!
    methods[name] = function (this: unknown, ...args: unknown[]) {
      step()
      return real.apply(this, args)
    }
  }
}

const probe = await fs.open(process.execPath)
count(Object.getPrototypeOf(probe) as object, ['write', 'writeFile', 'sync', 'truncate', 'chmod'])
await probe.close()
count(fs, ['open', 'writeFile', 'rename', 'unlink', 'link', 'mkdir', 'chmod', 'rm', 'symlink', 'copyFile'])
syncBuiltinESMExports()

// Only what is loaded from here on sees the methods above.
const { ConfigFile } = await import('../../features/config/file.ts')
const { Settings } = await import('../../features/config/settings.ts')
const log = { warn: () => undefined, error: () => undefined }
const settings = new Settings({ file: new ConfigFile(home), env: {}, log: log as never, sections: () => [] })
await settings.ready()
left = Number(last)
await settings.patch({ counters: { saved: Number(last) } })
left = Number.POSITIVE_INFINITY
process.send?.('saved')
process.disconnect?.()
