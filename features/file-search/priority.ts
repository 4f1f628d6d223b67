/** Programs that search for the server run behind it. */
import type { ChildProcess } from 'node:child_process'
import { getPriority, setPriority } from 'node:os'

/** So much less than the server's own ("nice"). */
const BEHIND = 10

/**
 * Lets a program that has just been started have what processors are left over, with all threads that it starts from now on: it uses every
 * one there is, and the events of everybody would wait for its time slices. Alone it is as quick as before.
 */
export function runBehind({ pid }: Pick<ChildProcess, 'pid'>): void {
  if (pid === undefined) return
  try {
    setPriority(pid, Math.min(19, getPriority() + BEHIND))
  } catch {
    // it has ended already, or systems differ: it runs as it is
  }
}
