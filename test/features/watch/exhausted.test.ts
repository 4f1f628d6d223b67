import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { lstat, mkdir, realpath, rename } from 'node:fs/promises'
import { test } from 'node:test'
import type { ChokidarOptions, FSWatcher } from 'chokidar'
import type { FileChange, WatchTrouble } from '../../../features/watch/change.ts'
import { Place } from '../../../features/watch/place.ts'
import { freshDir } from '../../helpers/temp.ts'

/** A machine that has no watches left, from the beginning or after a while. */
async function scene(whenReady: boolean, begins = (_watcher: EventEmitter) => {}) {
  const root = await realpath(await freshDir())
  await mkdir(`${root}/src`)
  const begun: { options: ChokidarOptions; watcher: EventEmitter }[] = []
  const told: (readonly FileChange[])[] = []
  let unknown = () => {}
  let lost = (_trouble: WatchTrouble) => {}
  const missed = new Promise<void>(resolve => {
    unknown = resolve
  })
  const over = new Promise<WatchTrouble>(resolve => {
    lost = resolve
  })
  const ports = {
    watch(_path: string, options: ChokidarOptions) {
      const watcher = Object.assign(new EventEmitter(), { close: async () => undefined })
      begun.push({ options, watcher })
      setImmediate(() => {
        begins(watcher)
        if (!options.usePolling && !whenReady) watcher.emit('error', Object.assign(new Error('no space'), { code: 'ENOSPC' }))
        watcher.emit('ready')
      })
      return watcher as unknown as FSWatcher
    },
    count: () => true,
    changed: (changes: readonly FileChange[]) => told.push(changes),
    unknown: () => unknown(),
    lost: (trouble: WatchTrouble) => lost(trouble)
  }
  return { root, place: await Place.open({ root, path: 'src', recursive: true }, ports), begun, missed, over }
}

test('where the machine has no watches left a path is looked at again and again', async () => {
  const { place, begun } = await scene(false)
  assert.deepEqual(
    begun.map(({ options }) => options.usePolling ?? false),
    [false, true]
  )
  await place.close()
})

test('when the watches run out later, the path is looked at from then on, and what was missed is said', async () => {
  const { place, begun, missed } = await scene(true)
  for (const code of ['EMFILE', 'ENOSPC', 'ENOSPC']) begun[0]?.watcher.emit('error', Object.assign(new Error('none left'), { code }))
  await missed
  assert.equal(begun.at(-1)?.options.usePolling, true)
  assert.equal(begun.length, 2)
  await place.close()
})

test('a path that is let go of while its place changes is not watched there', async () => {
  const { root, place, begun } = await scene(true)
  const isClosed = new Promise<void>(resolve => {
    Object.assign(begun[0]!.watcher, { close: async () => resolve(place.close()) })
  })
  await rename(`${root}/src`, `${root}/other`)
  begun[0]?.watcher.emit('raw', 'rename')
  await isClosed
  for (let passes = 0; passes < 20; passes++) await lstat(root)
  assert.equal(begun.length, 1)
})

test('more files than can be looked at end the watch, which is said', async () => {
  const { begun, over } = await scene(false)
  for (let n = 0; n <= 2000; n++) begun.at(-1)?.watcher.emit('all', 'add', `/x/${n}`)
  assert.equal((await over).trouble, 'too_many')
})

for (const code of ['EIO', 'ENOTCONN'])
  test(`a path whose disk is broken or gone (${code}) is refused, and its watch ends when it breaks later: neither waits for ever, nor is silent`, async () => {
    const broken = Object.assign(new Error('no disk'), { code, syscall: 'scandir' })
    await assert.rejects(
      scene(true, watcher => {
        watcher.emit('error', broken)
        watcher.emit = () => false // a directory that cannot be read is never ready
      }),
      ({ trouble, message }: WatchTrouble) => trouble === 'failed' && message.includes(code)
    )
    const { begun, over } = await scene(true)
    begun[0]?.watcher.emit('error', broken)
    assert.equal((await over).trouble, 'failed')
  })
