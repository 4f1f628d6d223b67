/** Temporary places and a log that remembers its warnings. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A fresh directory, removed after the test. */
export async function freshDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'svc-code-'))
  t.after(() => rm(dir, { recursive: true, force: true, maxRetries: 3 }))
  return dir
}

/** Takes warnings like the kernel's log and keeps their texts. */
export function warnings() {
  const texts: string[] = []
  return { texts, warn: (_fields: object, text?: string) => void texts.push(text ?? '') }
}
