/** Notices edits of the configuration file by others. */
import { type FSWatcher, unwatchFile, watch, watchFile } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

const pollMs = 2_000

/**
 * Calls `changed` once things are quiet for `quietMs` after something happened to the file. The directory is watched, because
 * editors replace the file; where the system cannot watch, the file is polled. Resolves to the undo. Keeps no process alive.
 */
export async function watchConfig(path: string, changed: () => void, options: { readonly quietMs?: number } = {}): Promise<() => void> {
  let timer: NodeJS.Timeout | undefined
  const touch = () => {
    clearTimeout(timer)
    timer = setTimeout(changed, options.quietMs ?? 150)
    timer.unref()
  }
  const watchers: FSWatcher[] = []
  let polling: string | undefined
  const poll = () => {
    if (polling !== undefined) return
    polling = path
    watchFile(path, { interval: pollMs, persistent: false }, touch)
  }
  // A linked file is edited where it lies.
  const real = await realpath(path).catch(() => path) // not there yet: it will appear under its own name
  for (const target of new Set([path, real])) {
    try {
      const watcher = watch(dirname(target), { persistent: false }, (_, name) => {
        if (name === null || name === basename(target)) touch()
      })
      watcher.on('error', poll)
      watchers.push(watcher)
    } catch {
      poll() // no watch to be had here (too many, or a file system without)
    }
  }
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers) watcher.close()
    if (polling !== undefined) unwatchFile(polling, touch)
  }
}
