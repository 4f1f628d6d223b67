import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headOf, tailOf } from '../../kernel/index.ts'

test('a text is cut between characters; what was half before stays as it is', () => {
  const face = '\u{1f600}'
  assert.deepEqual(
    [0, 1, 2, 3, 4, 9].map(count => headOf(`a${face}b`, count)),
    ['', 'a', 'a', `a${face}`, `a${face}b`, `a${face}b`]
  )
  assert.deepEqual(
    [0, 1, 2, 3, 4, 9].map(count => tailOf(`a${face}b`, count)),
    ['', 'b', 'b', `${face}b`, `a${face}b`, `a${face}b`]
  )
  assert.deepEqual([headOf('a\ud83d', 2), tailOf('\ude00b', 2)], ['a\ud83d', '\ude00b'])
})
