/** A task by itself: its times in the foreground and behind it, and what happens while its begin in the background is put on record. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { AgentHost } from '../../../features/sessions/index.ts'
import type { TaskOutcome, TaskSpec, TaskStopped } from '../../../features/tasks/index.ts'
import { type LivePorts, LiveTask } from '../../../features/tasks/live-task.ts'
import { latch } from '../../helpers/latch.ts'
import { freshDir } from '../../helpers/temp.ts'
import { silent } from '../tools/fakes.ts'

/** A task whose work goes on until `finish` or until it is stopped. `steps`: what was put on record, in this order. */
async function scene(spec: Partial<TaskSpec> = {}, ports: Partial<LivePorts> = {}) {
  const ended = latch<TaskOutcome>()
  const steps: string[] = []
  let stopped: TaskStopped | undefined
  const task = new LiveTask(
    'bash-1',
    {
      description: 'work',
      kind: 'process',
      facts: () => ({ kind: 'process', command: 'x', pid: 1 }),
      run: ({ signal }) => {
        signal.addEventListener('abort', () => {
          stopped = signal.reason
          ended.open({ status: 'killed' })
        })
        return ended.opened
      },
      ...spec
    },
    join(await freshDir(), 'task', 'output.log'),
    {
      agent: {} as AgentHost,
      now: () => new Date(0),
      log: silent,
      graceMs: () => 5_000,
      started: async () => void steps.push('started'),
      terminated: async () => void steps.push('terminated'),
      over: () => undefined,
      ...ports
    }
  )
  task.begin()
  return { task, steps, finish: () => ended.open({ status: 'completed' }), why: () => stopped }
}

const mocked = (t: TestContext) => t.mock.timers.enable({ apis: ['setTimeout'] })

test('the time in the foreground is over with the foreground; without a time behind it, it goes on', async t => {
  mocked(t)
  const { task, finish, why } = await scene({ foreground_ms: 100 })
  assert.equal(task.info.timeoutMs, 100)

  assert.equal(await task.detach(), true)
  t.mock.timers.tick(1_000)

  assert.deepEqual([why(), task.info.timeoutMs], [undefined, undefined])
  finish()
  assert.equal((await task.ended).info.status, 'completed')
})

test('the time in the background begins with it', async t => {
  mocked(t)
  const { task, why } = await scene({ foreground_ms: 100, timeout_ms: 500 })
  t.mock.timers.tick(99)
  await task.detach()
  assert.equal(task.info.timeoutMs, 500)
  t.mock.timers.tick(499)
  assert.equal(why(), undefined)
  t.mock.timers.tick(1)

  assert.deepEqual([(await task.ended).info.status, why()?.grace_ms], ['timed_out', 5_000])
})

test('a time that no timer can take does not end at once', async t => {
  const delays: unknown[] = []
  t.mock.method(globalThis, 'setTimeout', ((_then: () => void, ms: number) => void delays.push(ms)) as unknown as typeof setTimeout)
  const { task, finish } = await scene({ foreground_ms: 2 ** 31 })
  finish()
  await task.ended

  assert.deepEqual(delays, [2 ** 31 - 1])
})

test('a call that is aborted stops its task soon', async () => {
  const { task, why } = await scene()
  const turn = new AbortController()
  const waited = task.foreground(turn.signal)
  turn.abort()

  assert.equal(await waited, 'ended')
  assert.deepEqual([why()?.why, why()?.grace_ms], ['turn', 1_000])
})

test('an abort while the task moves to the background counts only when it cannot move', async () => {
  for (const fails of [false, true]) {
    const moving = latch()
    const started = async () => {
      await moving.opened
      if (fails) throw new Error('the disk is full')
    }
    const { task, finish, why } = await scene({}, { started })
    const turn = new AbortController()
    const waited = task.foreground(turn.signal)
    const moved = task.detach().catch(() => 'refused')
    turn.abort()
    moving.open()

    assert.equal(await moved, fails ? 'refused' : true)
    assert.equal(await waited, fails ? 'ended' : 'detached')
    assert.equal(why()?.why, fails ? 'turn' : undefined)
    finish()
    await task.ended
  }
})

test('what a task printed before it moved to the background is in its file, too', async () => {
  const ended = latch<TaskOutcome>()
  let print: (text: string) => void = () => undefined
  const run: TaskSpec['run'] = ({ output }) => {
    print = output
    return ended.opened
  }
  const { task } = await scene({ run })
  print('before\n')
  await task.detach()
  print('behind\n')
  ended.open({ status: 'completed' })
  const { output_path = '' } = await task.ended

  assert.equal(await readFile(output_path, 'utf8'), 'before\nbehind\n')
})

test('the end of a task comes behind its begin, also when it ends while that is put on record', async () => {
  const moving = latch()
  const { task, steps, finish } = await scene({}, { started: () => moving.opened.then(() => void steps.push('started')) })
  const moved = task.detach()
  finish()
  await new Promise(resolve => setImmediate(resolve))
  moving.open()

  assert.equal(await moved, true)
  await task.ended
  assert.deepEqual(steps, ['started', 'terminated'])
})
