/** A kernel with the packs of files and one session over a temporary directory. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fs from '../../../features/fs/pack.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import type { Pack } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'

export async function fileScene(t: TestContextLike, more: readonly Pack[] = [], options: { config?: Record<string, object> } = {}) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'svc-code-test-')))
  const cwd = join(dir, 'work')
  await mkdir(cwd)
  const kernel = await startTestKernel(t, { packs: [workspaces, sessions, fs, ...more], ...options })
  t.after(() => rm(dir, { recursive: true, force: true }))
  const { data } = await kernel.rest.json('POST', '/api/v1/sessions', { metadata: { cwd } })
  const session_id = (data as { id: string }).id
  return {
    ...kernel,
    dir,
    cwd,
    session_id,
    params: { session_id },
    /** Writes a file below the working directory. */
    async put(path: string, content: string | Uint8Array = ''): Promise<string> {
      const full = join(cwd, path)
      await mkdir(dirname(full), { recursive: true })
      await writeFile(full, content)
      return full
    },
    /** Answers of `fs:<action>`. */
    // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
    async ask(action: string, body?: object): Promise<any> {
      return await kernel.rest.json('POST', `/api/v1/sessions/${session_id}/fs:${action}`, body)
    }
  }
}
