/** What is put down to a pack: its faults, each once, and its own time on the event loop. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testEnvironment } from '../../kernel/testing.ts'

test('an error that several meet on its way counts once for the pack it is put down to', () => {
  const { guard } = testEnvironment()
  const error = new Error('boom')
  guard.report('p', 'listener of x', error)
  guard.report('p', 'route GET /x', error)
  assert.deepEqual(guard.faults('p'), { count: 1, last: 'listener of x: boom' })
  guard.report('p', 'route GET /x', new Error('boom'))
  assert.equal(guard.faults('p')?.count, 2)
})

test('time of a call within a call is put down to the pack that takes it, and to no other', () => {
  const { guard } = testEnvironment()
  guard.run('outer', 'route GET /x', () => {
    guard.run('inner', 'listener of x', () => {
      const end = performance.now() + 60
      while (performance.now() < end); // holds the loop, as a bad listener does
    })
  })
  assert.ok((guard.time('outer')?.ms ?? 0) < (guard.time('inner')?.ms ?? 0))
})
