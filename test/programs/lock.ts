/**
 * Child for lock tests: `hold <path>` takes the lock and stays; `try <path>` says whether it was free; `add <file> <times>` counts a number
 * in a file up under the lock.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { acquireLock, withLock } from '../../kernel/storage/lock.ts'

const [mode, path, times] = process.argv.slice(2)
if (mode === 'hold') {
  const lock = await acquireLock(path!, { info: { port: 7 } })
  console.log(lock ? 'held' : 'refused')
  process.stdin.on('data', async () => {
    await lock?.release()
    console.log('released')
  })
} else if (mode === 'try') {
  console.log((await acquireLock(path!)) ? 'held' : 'refused')
} else {
  for (let i = 0; i < Number(times); i++) {
    await withLock(`${path}.lock`, async () => {
      const count = Number(await readFile(path!, 'utf8'))
      await writeFile(path!, String(count + 1))
    })
  }
}
