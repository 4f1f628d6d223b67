import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scope } from '../../kernel/lifecycle/scope.ts'

const later = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

test('an undo that comes when the time of the whole list is used up has a moment all the same', async () => {
  const scope = new Scope()
  const undone: string[] = []
  scope.own(async () => {
    await later(2)
    undone.push('first')
  })
  assert.deepEqual(await scope.close(undefined, 0), [])
  assert.deepEqual(undone, ['first'])
})
