/** Temporary places and a log that remembers its warnings. */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []
// Not after the test: hooks run in the order of their registration, so a server that is started on a directory would still write there.
process.once('exit', () => {
  if (made.length > 0) spawnSync('rm', ['-rf', ...made]) // takes a third of the time of the loop, which does what is left where there is no `rm`
  for (const dir of made) rmSync(dir, { recursive: true, force: true, maxRetries: 3 })
})

/** A fresh directory, removed when the process ends. */
export async function freshDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'svc-code-'))
  made.push(dir)
  return dir
}

/** Takes warnings like the kernel's log and keeps their texts. */
export function warnings() {
  const texts: string[] = []
  return { texts, warn: (_fields: object, text?: string) => void texts.push(text ?? '') }
}
