/** Worker: watches paths. In its own thread, because a large tree holds up the event loop for a second while it is read. */
import { parentPort } from 'node:worker_threads'
import type { ChokidarOptions, FSWatcher } from 'chokidar'
import { type FileChange, type Trouble, WatchTrouble } from './change.ts'
import { Place } from './place.ts'
import type { PlaceOptions } from './spot.ts'
import { WholeWatcher } from './whole-watcher.ts'

export type ToWatcher =
  | ({ readonly kind: 'open'; readonly id: number; readonly max: number } & PlaceOptions)
  | { readonly kind: 'close'; readonly id: number }

export type FromWatcher = { readonly id: number } & (
  | { readonly kind: 'opened' }
  | { readonly kind: 'changed'; readonly changes: readonly FileChange[] }
  | { readonly kind: 'unknown'; readonly count: number }
  | { readonly kind: 'refused' | 'lost'; readonly trouble: Trouble; readonly message: string }
)

const places = new Map<number, Promise<Place | undefined>>()
let entries = 0

const tell = (message: FromWatcher) => parentPort?.postMessage(message)

function watch(path: string, options: ChokidarOptions): FSWatcher {
  const watcher = new WholeWatcher(options)
  watcher.add(path)
  return watcher
}

function open({ id, max, root, path, recursive }: Extract<ToWatcher, { kind: 'open' }>): Promise<Place | undefined> {
  const ports = {
    watch,
    count: (change: number) => {
      entries += change
      return entries <= max
    },
    changed: (changes: readonly FileChange[]) => tell({ kind: 'changed', id, changes }),
    unknown: (count: number) => tell({ kind: 'unknown', id, count }),
    lost: ({ trouble, message }: WatchTrouble) => tell({ kind: 'lost', id, trouble, message })
  }
  return Place.open({ root, path, recursive }, ports).then(
    place => {
      tell({ kind: 'opened', id })
      return place
    },
    error => {
      const { trouble, message } = WatchTrouble.of(error)
      tell({ kind: 'refused', id, trouble, message })
      return undefined
    }
  )
}

parentPort?.on('message', (message: ToWatcher) => {
  if (message.kind === 'open') places.set(message.id, open(message))
  else {
    const place = places.get(message.id)
    places.delete(message.id)
    void place?.then(opened => opened?.close())
  }
})
