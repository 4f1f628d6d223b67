/** A call that is refused anyway is not asked about. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { conversation } from '../helpers/conversation.ts'
import { freshDir } from '../helpers/temp.ts'

test('an edit that does not fit the file is refused without asking; one that fits what calls before it make of the file is asked', async t => {
  const path = join(await freshDir(), 'outside.txt')
  await writeFile(path, 'one two two')
  const { turn } = await conversation(t)
  const edit = (old_string: string, new_string: string) => ['Edit', { path, old_string, new_string }] as const
  await turn([['Read', { path }]])

  const missing = await turn([edit('three', 'four')])
  assert.deepEqual(missing.asked, [])
  assert.match(missing.results[0]?.output ?? '', /old_string was not found/)
  const doubled = await turn([edit('two', 'four')])
  assert.deepEqual(doubled.asked, [])
  assert.match(doubled.results[0]?.output ?? '', /occurs 2 times/)

  const chain = await turn([edit('one', 'first'), edit('first two', 'second')])
  assert.equal(chain.asked.length, 2)
  assert.deepEqual(
    chain.results.map(result => result.is_error),
    [false, false]
  )
  assert.equal(await readFile(path, 'utf8'), 'second two')

  const again = await turn([['Read', { path }], edit('third', 'x')])
  assert.match(again.results[1]?.output ?? '', /old_string was not found/)
})
