/** Functions of Node's own modules that stand in for others during a test. */
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'

/**
 * Shows what `t.mock` has replaced in a module of Node (`t.mock.method(fs, 'stat', ...)`) to those who import it by name. The answered function, or
 * the end of the test, brings back what was there: the runner restores its mocks later, and says nothing to importers.
 */
export function mockedBuiltins(t: TestContext): () => void {
  syncBuiltinESMExports()
  const restore = () => {
    t.mock.restoreAll()
    t.mock.timers.reset() // replaced ones would stay with all importers in this process
    syncBuiltinESMExports()
  }
  t.after(restore)
  return restore
}
