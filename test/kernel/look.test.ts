/** Looking at paths. */
import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { lookAt } from '../../kernel/index.ts'
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
