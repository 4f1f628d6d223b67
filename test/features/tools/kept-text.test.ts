/** Text that is kept in a file beside whoever prints it. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { KeptText } from '../../../features/tools/index.ts'
import { freshDir } from '../../helpers/temp.ts'

test('what was written is there at the end, or gone when nobody wants it', async () => {
  const path = join(await freshDir(), 'made', 'text')
  for (const keep of [true, false]) {
    const kept = KeptText.open(path)
    kept?.write('one ')
    kept?.write(Buffer.from('two'))
    assert.equal(await kept?.end(keep), keep)
    assert.deepEqual(await readdir(dirname(path)), keep ? ['text'] : [])
    if (!keep) continue
    assert.equal(await readFile(path, 'utf8'), 'one two')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
  }
})

test('a file that the disk refused long before its end does not hold the end up', { timeout: 10_000 }, async () => {
  const dir = await freshDir()
  await mkdir(join(dir, 'text'))
  const kept = KeptText.open(join(dir, 'text'))
  kept?.write('one')
  while (!kept?.failed) await new Promise(setImmediate)
  await new Promise(setImmediate) // the stream has closed by itself
  kept.write('two')
  assert.equal(await kept.end(true), false)
})

test('without a directory for it there is none', async () => {
  const dir = await freshDir()
  await writeFile(join(dir, 'file'), '')
  assert.equal(KeptText.open(join(dir, 'file', 'text')), undefined)
})
