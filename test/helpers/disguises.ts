/** What may stand in the place of a file that somebody gives the server. */
import { execFileSync } from 'node:child_process'
import { mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises'

const puts: Readonly<Record<string, (path: string) => unknown>> = {
  'a pipe': path => execFileSync('mkfifo', [path]),
  'a device': path => symlink('/dev/zero', path),
  'a directory': path => mkdir(path),
  'several GB': async path => {
    await writeFile(path, '')
    await truncate(path, 5_000_000_000) // of no blocks
  }
}

/** Puts one after the other at the path, in place of what is there. */
export async function inEachDisguise(path: string, look: (what: string) => Promise<unknown>): Promise<void> {
  for (const [what, put] of Object.entries(puts)) {
    await rm(path, { recursive: true, force: true })
    await put(path)
    await look(what)
  }
  await rm(path, { recursive: true, force: true })
}
