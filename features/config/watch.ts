/** Notices edits of the configuration file by others. */
import { type FSWatcher, unwatchFile, watch, watchFile } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { whereItLies } from './given-file.ts'

const pollMs = 2_000
const quietMs = 150

/**
 * Calls `changed` once things are quiet for a moment after something happened to the file. The directory is watched, because editors replace
 * the file, and while it is not there the one in which it will appear; where the system cannot watch, the file is polled. A linked file is
 * watched where it lies, too, also when the link comes or moves later. Resolves to the undo. Keeps no process alive.
 */
export async function watchConfig(path: string, changed: () => void): Promise<() => void> {
  let timer: NodeJS.Timeout | undefined
  let closed = false
  const touch = () => {
    clearTimeout(timer)
    timer = setTimeout(() => void settle(), quietMs)
    timer.unref()
  }
  const lookouts = new Map<string, Lookout>()
  const follow = async () => {
    const real = await whereItLies(path).catch(() => path) // it cannot be told: it will appear under its own name
    if (closed) return
    for (const [target, { close }] of lookouts) {
      if (target === path || target === real) continue
      close()
      lookouts.delete(target)
    }
    for (const target of [path, real]) if (!lookouts.has(target)) lookouts.set(target, lookout(target, touch))
    await Promise.all(Array.from(lookouts.values(), each => each.look()))
  }
  const settle = async () => {
    await follow() // first, so that whoever hears of the change can rely on the next one
    if (!closed) changed()
  }
  await follow()
  return () => {
    closed = true
    clearTimeout(timer)
    for (const { close } of lookouts.values()) close()
  }
}

interface Lookout {
  /** Takes in which directories are there. Resolves when everything from now on is noticed. */
  look(): Promise<void>
  close(): void
}

/**
 * Calls `touch` for everything that happens to the name, and when its directory comes or goes: what is watched is the nearest one that is
 * there.
 */
function lookout(target: string, touch: () => void): Lookout {
  let watched: string | undefined
  let watcher: FSWatcher | undefined
  let polling = false
  let closed = false
  const poll = () => {
    watcher?.close()
    if (polling || closed) return
    polling = true
    watchFile(target, { interval: pollMs, persistent: false }, touch)
  }
  return {
    async look() {
      for (;;) {
        const { dir, name, id } = await nearest(target)
        if (closed || polling || id === watched) return
        watched = id // and once more: what comes in between is not noticed
        watcher?.close()
        try {
          watcher = watch(dir, { persistent: false }, (_, changed) => {
            if (changed === null || changed === name || changed === basename(dir)) touch()
          }).on('error', poll)
        } catch {
          poll() // no watch to be had here (too many, or a file system without)
        }
      }
    },
    close() {
      closed = true
      watcher?.close()
      if (polling) unwatchFile(target, touch)
    }
  }
}

/** The nearest directory above a path that is there, what of the path lies in it, and which directory it is: another one may take its place. */
async function nearest(path: string): Promise<{ readonly dir: string; readonly name: string; readonly id: string }> {
  const dir = dirname(path)
  const found = await stat(dir).catch(() => undefined)
  if (!found && dir !== path) return await nearest(dir)
  return { dir, name: basename(path), id: `${found?.dev} ${found?.ino} ${dir}` }
}
