/** Notices edits of the configuration file by others. */
import { unwatchFile, watch, watchFile } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

const pollMs = 2_000
const quietMs = 150

/**
 * Calls `changed` once things are quiet for a moment after something happened to the file. The directory is watched, because
 * editors replace the file; where the system cannot watch, the file is polled. A linked file is watched where it lies, too, also when the
 * link comes or moves later. Resolves to the undo. Keeps no process alive.
 */
export async function watchConfig(path: string, changed: () => void): Promise<() => void> {
  let timer: NodeJS.Timeout | undefined
  let closed = false
  const touch = () => {
    clearTimeout(timer)
    timer = setTimeout(() => void settle(), quietMs)
    timer.unref()
  }
  const lookouts = new Map<string, () => void>()
  const follow = async () => {
    const real = await realpath(path).catch(() => path) // not there yet: it will appear under its own name
    if (closed) return
    for (const [target, close] of lookouts) {
      if (target === path || target === real) continue
      close()
      lookouts.delete(target)
    }
    for (const target of [path, real]) if (!lookouts.has(target)) lookouts.set(target, lookout(target, touch))
  }
  const settle = async () => {
    await follow() // first, so that whoever hears of the change can rely on the next one
    if (!closed) changed()
  }
  await follow()
  return () => {
    closed = true
    clearTimeout(timer)
    for (const close of lookouts.values()) close()
  }
}

/** Calls `touch` for everything that happens to the name; answers the undo. */
function lookout(target: string, touch: () => void): () => void {
  let polling = false
  const poll = () => {
    if (polling) return
    polling = true
    watchFile(target, { interval: pollMs, persistent: false }, touch)
  }
  const stopPolling = () => {
    if (polling) unwatchFile(target, touch)
  }
  try {
    const watcher = watch(dirname(target), { persistent: false }, (_, name) => {
      if (name === null || name === basename(target)) touch()
    })
    watcher.on('error', poll)
    return () => {
      watcher.close()
      stopPolling()
    }
  } catch {
    poll() // no watch to be had here (too many, or a file system without)
    return stopPolling
  }
}
