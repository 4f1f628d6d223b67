/** What stays in memory: for tests of what is let go of. */
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** How many of them are left: looked at until they are as few as they may be, or half a minute. */
export async function keptOf(known: readonly WeakRef<object>[], most = 0): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const left = () => known.filter(each => each.deref() !== undefined).length
  for (const end = performance.now() + 30_000; left() > most && performance.now() < end; collect()) await turn() // what was asked for lives to the end of a turn
  return left()
}
