/**
 * Commands that the system keeps apart from the server (Linux): in a user namespace of their own they run as the same user with the same files,
 * but may not look into the memory of processes outside, whatever `kernel.yama.ptrace_scope` says. It needs no privilege.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** What commands are started by, or why none may be. */
export type Launcher = { readonly words: readonly string[] } | { readonly refusal: string }

const words = ['unshare', '--user', '--map-current-user', '--']
const PROBE_MS = 5000

/** Tried once: where the system has no such thing, no command runs, and says why. */
export async function apart(): Promise<Launcher> {
  const [program = '', ...args] = words
  try {
    await promisify(execFile)(program, [...args, 'true'], { timeout: PROBE_MS })
    return { words }
  } catch (error) {
    const why = error instanceof Error ? error.message.trim().replace(/\s+/g, ' ') : String(error)
    return { refusal: `commands are to be kept apart from the server (keep_apart of tools-shell), and this system cannot: ${why}` }
  }
}
