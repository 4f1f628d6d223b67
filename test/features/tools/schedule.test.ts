import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ToolAccess } from '../../../features/tools/index.ts'
import { conflict, schedule } from '../../../features/tools/schedule.ts'
import { latch } from '../../helpers/latch.ts'

const read = (path: string): ToolAccess => ({ kind: 'read', path })
const write = (path: string): ToolAccess => ({ kind: 'write', path })
const search = (path: string): ToolAccess => ({ kind: 'search', path, recursive: true })
const all: ToolAccess = { kind: 'exclusive' }

test('only a writer on an overlapping path conflicts', () => {
  assert.equal(conflict([read('/a')], [read('/a')]), false)
  assert.equal(conflict([read('/a')], [write('/A')]), true)
  assert.equal(conflict([write('/a')], [write('/b')]), false)
  assert.equal(conflict([search('/a')], [write('/a/b/c')]), true)
  assert.equal(conflict([search('/a')], [write('/ab')]), false)
  assert.equal(conflict([search('/')], [write('/ab')]), true)
  assert.equal(conflict([all], [read('/a')]), true)
  assert.equal(conflict([all], []), false)
  const task = (kind: 'look' | 'change', thing = 'task:1'): ToolAccess => ({ kind, thing })
  assert.equal(conflict([task('look')], [task('look')]), false)
  assert.equal(conflict([task('look')], [task('change')]), true)
  assert.equal(conflict([task('change', 'task:2')], [task('change')]), false)
  assert.equal(conflict([task('change')], [write('task:1')]), false)
  assert.equal(conflict([task('look')], [all]), true)
})

test('conflicting jobs keep their order, the others overtake', async () => {
  const order: string[] = []
  const held = latch()
  const job = (name: string, access: ToolAccess, wait?: Promise<void>) => ({
    accesses: [access],
    run: async () => {
      order.push(`${name} begins`)
      await wait
      order.push(`${name} ends`)
    }
  })
  const done = schedule([
    job('write x', write('/x'), held.opened),
    job('read x', read('/x')),
    job('read y', read('/y')),
    job('rewrite x', write('/x'))
  ])
  await Promise.resolve()
  held.open()
  await done
  assert.deepEqual(order.slice(0, 2), ['write x begins', 'read y begins'])
  assert.ok(order.indexOf('write x ends') < order.indexOf('read x begins'))
  assert.ok(order.indexOf('read x ends') < order.indexOf('rewrite x begins'))
})

test('a job overtakes none that waits and conflicts with it', async () => {
  const order: string[] = []
  const held = latch()
  const job = (name: string, accesses: ToolAccess[], wait?: Promise<void>) => ({
    accesses,
    run: async () => {
      await wait
      order.push(name)
    }
  })
  const done = schedule([job('x', [write('/x')], held.opened), job('x and y', [write('/x'), write('/y')]), job('y', [write('/y')])])
  await new Promise(setImmediate)
  held.open()
  await done
  assert.deepEqual(order, ['x', 'x and y', 'y'])
})
