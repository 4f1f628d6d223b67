/** A process whose descriptors are used up, as far as the programs that it starts can tell. */
import { ChildProcess } from 'node:child_process'
import type { TestContext } from 'node:test'

/** Nothing can be started until the answered function is called: what Node makes of the system's EMFILE is a child without streams. */
export function noDescriptors(t: TestContext): () => void {
  const error = Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE', syscall: 'spawn' })
  const children = ChildProcess.prototype as unknown as { spawn(this: ChildProcess): void }
  const { mock } = t.mock.method(children, 'spawn', function (this: ChildProcess) {
    process.nextTick(() => this.emit('error', error))
  })
  return () => mock.restore()
}
