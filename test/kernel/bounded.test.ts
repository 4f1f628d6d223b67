import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileUnusable, readBounded } from '../../kernel/index.ts'
import { inEachDisguise } from '../helpers/disguises.ts'
import { freshDir } from '../helpers/temp.ts'

test('a file is read whole up to its limit, behind links too; a larger one is told', async () => {
  const dir = await freshDir()
  const file = join(dir, 'file')
  await symlink(file, join(dir, 'link'))
  for (const text of ['', 'x', 'é'.repeat(50_000)]) {
    await writeFile(file, text)
    assert.equal(String(await readBounded(join(dir, 'link'), 100_000)), text)
  }
  await appendFile(file, 'x')
  await assert.rejects(readBounded(file, 100_000), new FileUnusable('larger than 100000 bytes'))
  await assert.rejects(readBounded(join(dir, 'none'), 10), { code: 'ENOENT' })
  await assert.rejects(readBounded(join(file, 'none'), 10), { code: 'ENOTDIR' })
})

test('what stands in the place of a file is told, and neither waited for nor read', async () => {
  const path = join(await freshDir(), 'file')
  await inEachDisguise(path, what =>
    assert.rejects(readBounded(path, 10), new FileUnusable(what === 'several GB' ? 'larger than 10 bytes' : 'not a regular file'))
  )
})

test('whoever writes into a pipe that is not read goes on waiting for a reader', async t => {
  const path = join(await freshDir(), 'pipe')
  execFileSync('mkfifo', [path])
  const writer = spawn('sh', ['-c', `echo begun; echo text > "${path}"`], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.after(() => writer.kill())
  await once(writer.stdout!, 'data')
  await assert.rejects(readBounded(path, 10), FileUnusable)
  assert.equal(execFileSync('cat', [path], { encoding: 'utf8' }), 'text\n')
})

const isLinux = process.platform === 'linux'
test('a file of which its file system does not say the size is read to its end or to the limit', { skip: !isLinux }, async () => {
  assert.match(String(await readBounded('/proc/self/status', 100_000)), /^Name:[\s\S]*\nThreads:/)
  await assert.rejects(readBounded('/proc/self/maps', 5_000), FileUnusable)
})
