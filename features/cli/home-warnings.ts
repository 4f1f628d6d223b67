/** What is odd about a home that was there before. */
import { statSync } from 'node:fs'
import { join } from 'node:path'

/** Can others read the home or the configuration, where keys and conversations are? One sentence each, with the remedy. */
export function homeWarnings(home: string): string[] {
  if (process.platform === 'win32') return []
  const warnings: string[] = []
  for (const [path, what, mode] of [
    [home, 'the home', '700'],
    [join(home, 'config.toml'), 'the configuration', '600']
  ] as const) {
    const found = statSync(path, { throwIfNoEntry: false })
    if (!found || (found.mode & 0o077) === 0) continue
    warnings.push(`${what} ${path} is open to other users (mode 0${(found.mode & 0o777).toString(8)}); run: chmod ${mode} ${path}`)
  }
  return warnings
}
