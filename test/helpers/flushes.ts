/** Flushes of files that are opened with the calls of Node, where nobody hands a disk in. */
import { open } from 'node:fs/promises'
import type { TestContext } from 'node:test'

/** Every flush from here to the end of the test adds `flush` to the steps; answers how many there were. */
export async function countFlushes(t: TestContext, steps: string[] = []): Promise<() => number> {
  const handle = await open(process.execPath, 'r')
  const prototype = Object.getPrototypeOf(handle) as Pick<typeof handle, 'sync' | 'datasync'>
  await handle.close()
  let count = 0
  for (const name of ['sync', 'datasync'] as const) {
    const flush = prototype[name]
    t.mock.method(prototype, name, async function (this: typeof handle) {
      await flush.call(this)
      count++
      steps.push('flush')
    })
  }
  return () => count
}
