/** Looking at paths. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { foundAt, lookAt } from '../../kernel/index.ts'
import { mockedBuiltins } from '../helpers/builtins.ts'
import { freshDir } from '../helpers/temp.ts'

test('what is at a path is seen behind links; nothing is seen where nothing is, at a link to itself and below a file', async () => {
  const dir = await freshDir()
  await mkdir(join(dir, 'below'))
  await writeFile(join(dir, 'file'), 'text')
  await symlink(join(dir, 'file'), join(dir, 'link'))
  await symlink(join(dir, 'loop'), join(dir, 'loop'))
  const look = async () => {
    const found = await Promise.all(
      ['file', 'link', 'below', 'nothing', 'loop', 'file/below', 'nothing/below'].map(name => lookAt(join(dir, name)))
    )
    return found.map(each => (each ? [each.isDirectory(), each.isFile() ? each.size : 0] : undefined))
  }
  const expected = [[false, 4], [false, 4], [true, 0], undefined, undefined, undefined, undefined]

  assert.deepEqual(await look(), expected)
  assert.deepEqual(await look(), expected) // from then on the directory is known to be quick
})

test('a change is seen at once', async () => {
  const dir = await freshDir()
  const file = join(dir, 'file')
  const seen: (number | undefined)[] = []
  for (const text of ['', 'a', 'ab', 'abc']) {
    if (text !== '') await writeFile(file, text)
    seen.push((await lookAt(file))?.size)
  }

  assert.deepEqual(seen, [undefined, 1, 2, 3])
})

/** Slower than a disk that answers from memory. */
const slowly = (() => {
  for (const began = performance.now(); performance.now() - began < 6; );
}) as never

test('a disk that was slow once is asked by other threads from then on, whatever the directory', async t => {
  const [one, other] = [await freshDir(), await freshDir()]
  const statSync = t.mock.method(fs, 'statSync')
  t.mock.method(fs, 'stat', ((_path: string, answered: (error: null) => void) => answered(null)) as never) // quick, however busy the machine is
  mockedBuiltins(t)
  for (const dir of [one, other]) await lookAt(join(dir, 'nothing'))
  for (const dir of [one, other]) await lookAt(join(dir, 'nothing'))
  assert.equal(statSync.mock.callCount(), 2, 'both are known to be quick')
  statSync.mock.mockImplementationOnce(slowly)
  await lookAt(join(one, 'nothing'))
  await lookAt(join(other, 'nothing'))
  assert.equal(statSync.mock.callCount(), 3)
})

test('a disk is not slow because this thread has much to do, but because it answers late', async t => {
  const nothing = Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
  const statSync = t.mock.method(fs, 'statSync')
  const stat = t.mock.method(fs, 'stat')
  mockedBuiltins(t)
  /** Of the look at a directory that is seen for the first time, which takes some passes of a busy loop, and of another one. */
  const looks = async (passes: number) => {
    const pass = (left: number, answered: (error: Error) => void) => {
      setImmediate(slowly)
      setImmediate(left > 1 ? () => pass(left - 1, answered) : () => answered(nothing))
    }
    stat.mock.mockImplementation(((_path: string, answered: (error: Error) => void) => pass(passes, answered)) as never)
    const dir = await freshDir()
    await lookAt(join(dir, 'nothing'))
    const before = statSync.mock.callCount()
    await lookAt(join(dir, 'other'))
    return statSync.mock.callCount() - before
  }
  assert.deepEqual([await looks(1), await looks(3)], [1, 0])
})

test('what the disk does not tell is no nothing', async t => {
  const dir = await freshDir()
  await writeFile(join(dir, 'file'), 'text')
  const fault = Object.assign(new Error('EIO'), { code: 'EIO' })
  t.mock.method(fs, 'stat', ((_path: string, answered: (error: Error) => void) => answered(fault)) as never)
  t.mock.method(fs, 'statSync', () => {
    throw fault
  })
  const restore = mockedBuiltins(t)
  for (const thread of ['another one', 'this one']) {
    await assert.rejects(async () => foundAt(join(dir, 'file')), fault, thread)
    assert.equal(await lookAt(join(dir, 'file')), undefined, thread)
  }
  restore()
  assert.equal((await foundAt(join(dir, 'file')))?.size, 4)
  assert.equal(await foundAt(join(dir, 'nothing')), undefined)
  assert.equal(await foundAt(join(dir, 'file', 'below')), undefined)
})
