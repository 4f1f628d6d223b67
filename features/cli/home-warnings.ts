/** What is odd about a home that was there before. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../../kernel/index.ts'

/** Rights of others than the owner to what is at a path, as octal digits of its whole mode; undefined: there are none. */
export function openMode(path: string): string | undefined {
  const mode = process.platform === 'win32' ? 0 : (statSync(path, { throwIfNoEntry: false })?.mode ?? 0)
  return (mode & 0o077) === 0 ? undefined : `0${(mode & 0o777).toString(8)}`
}

/** Can others read the home or the configuration, where keys and conversations are? One sentence each, with the remedy. */
export function homeWarnings(home: string): string[] {
  const places = [
    ['the home', home, '700'],
    ['the configuration', join(home, 'config.toml'), '600']
  ] as const
  return places.flatMap(([what, path, meant]) => {
    const mode = openMode(path)
    return mode === undefined ? [] : [`${what} ${path} is open to other users (mode ${mode}); run: chmod ${meant} ${shellWord(path)}`]
  })
}
