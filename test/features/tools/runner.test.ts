import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { type Tool, ToolRefusal, type ToolUpdate } from '../../../features/tools/tool.ts'
import { Type } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scene, scripted } from './fakes.ts'

test('every call is prepared and announced before the first one runs, and results come back in call order', async t => {
  const slow = latch()
  const order: string[] = []
  const { run, log, hooks } = await scene(t, [
    scripted({ name: 'Slow', run: () => slow.opened.then(() => ({ output: 'slow' })) }),
    scripted({
      name: 'Fast',
      run: () => {
        order.push('ran')
        slow.open()
        return { output: 'fast' }
      }
    })
  ])
  hooks.before.tapPromise('test', async ({ call }) => {
    order.push(`asked ${call.id}`)
    return undefined
  })

  const results = await run([
    ['A', 'Slow'],
    ['B', 'Fast']
  ])

  assert.deepEqual(
    results.map(result => result.output),
    ['slow', 'fast']
  )
  assert.deepEqual(order, ['asked A', 'asked B', 'ran'])
  assert.deepEqual(log, ['started A', 'started B', 'finished B', 'finished A'])
})

test('a denied call is announced, fails with the text of the verdict, and the others run', async t => {
  const { run, log, hooks } = await scene(t, [scripted({ name: 'One' }), scripted({ name: 'Two' })])
  hooks.before.tapPromise('test', async ({ call }) => (call.name === 'One' ? { kind: 'deny', output: 'not this one' } : undefined))

  const [one, two] = await run([
    ['A', 'One'],
    ['B', 'Two']
  ])

  assert.deepEqual(one, { output: 'not this one', is_error: true })
  assert.equal(two?.is_error, undefined)
  assert.deepEqual(log.slice(0, 2), ['started A', 'started B'])
  assert.ok(log.includes('finished A'))
})

test('a hook that fails closes the way', async t => {
  const { run, hooks } = await scene(t, [scripted({ name: 'One', run: () => assert.fail('must not run') })])
  hooks.before.tapPromise('test', async () => {
    throw new Error('broken hook')
  })
  const [result] = await run([['A', 'One']])
  assert.equal(result?.is_error, true)
})

test('missing, empty and unreadable arguments count as an empty object; violations name the tool and the field', async t => {
  const strict = scripted({ name: 'Strict', parameters: Type.Object({ path: Type.String() }) })
  const { run, reports } = await scene(t, [strict, scripted({ name: 'Lax' })])

  const [empty, broken, wrong, extra, list, missing] = await run([
    ['A', 'Lax', ''],
    ['B', 'Strict', '{"path": '],
    ['C', 'Strict', '{"path": 7}'],
    ['D', 'Strict', '{"path": "x", "more": 1}'],
    ['E', 'Strict', '[]'],
    ['F', 'Nothing']
  ])

  assert.equal(empty?.is_error, undefined)
  assert.match(String(broken?.output), /Strict: they are not valid JSON.*; path: /)
  assert.match(String(wrong?.output), /Strict: path: expected string/)
  assert.match(String(extra?.output), /more: /)
  assert.equal(list?.is_error, true)
  assert.match(String(missing?.output), /not found: Nothing/)
  const started = reports.find(each => each.type === 'started' && each.call.id === 'B')
  assert.deepEqual(started?.type === 'started' && started.args, {})
})

test('a tool that is called by nearly its name is named', async t => {
  const { run } = await scene(t, [scripted({ name: 'Read' }), scripted({ name: 'TodoList' })])
  const results = await run([
    ['A', 'functions.Read'],
    ['B', 'todolist'],
    ['C', 'ToDoLists'],
    ['D', 'Fly']
  ])
  assert.deepEqual(
    results.map(result => result?.output),
    [
      'Tool not found: functions.Read. Did you mean Read?',
      'Tool not found: todolist. Did you mean TodoList?',
      'Tool not found: ToDoLists. Did you mean TodoList?',
      'Tool not found: Fly'
    ]
  )
})

test('a refusal of the tool reaches the model as it is', async t => {
  const tool = { ...scripted({ name: 'Picky' }), prepare: () => Promise.reject(new ToolRefusal('no such place')) }
  const { run } = await scene(t, [tool])
  assert.deepEqual(await run([['A', 'Picky']]), [{ output: 'no such place', is_error: true }])
})

test('the same call twice in one response runs once and answers twice', async t => {
  let runs = 0
  const { run, log, reports } = await scene(t, [scripted({ name: 'Once', run: () => ({ output: `run ${++runs}` }) })])
  const results = await run([
    ['A', 'Once', '{"path":"x"}'],
    ['B', 'Once', ' { "path" : "x" } '],
    ['C', 'Once', '{"path":"y"}']
  ])
  assert.equal(runs, 2)
  assert.equal(results[0]?.output, results[1]?.output)
  assert.deepEqual(log.slice(0, 3), ['started A', 'started B', 'started C'])
  assert.equal(log.filter(line => line.startsWith('finished')).length, 3)
  const told = reports.flatMap(report => (report.type === 'started' ? [report.description] : []))
  assert.deepEqual(told, ['Once: x', 'Once: x', 'Once: y'], 'the copy is shown as what ran')
})

test('the same call twice in one response is refused twice', async t => {
  const { run, reports, hooks } = await scene(t, [scripted({ name: 'Once' })])
  hooks.before.tapPromise('test', async () => ({ kind: 'deny', output: 'no' }))
  const results = await run([
    ['A', 'Once', '{"path":"x"}'],
    ['B', 'Once', '{"path":"x"}']
  ])
  assert.deepEqual(
    results.map(({ output }) => output),
    ['no', 'no']
  )
  const told = reports.flatMap(report => (report.type === 'started' ? [report.refused] : []))
  assert.deepEqual(told, [true, true])
})

test('the same call behind one that may change what it sees runs again', async t => {
  let content = 'old'
  const look = scripted({ name: 'Look', accesses: () => [{ kind: 'read', path: '/a' }], run: () => ({ output: content }) })
  const other = scripted({ name: 'Other', accesses: () => [{ kind: 'read', path: '/a' }] })
  const apart = scripted({ name: 'Apart', accesses: () => [{ kind: 'write', path: '/b' }] })
  const change = scripted({
    name: 'Change',
    accesses: () => [{ kind: 'write', path: '/a' }],
    run: () => {
      content = 'new'
      return { output: 'changed' }
    }
  })
  const { run, log } = await scene(t, [look, other, apart, change])

  const results = await run([
    ['A', 'Look'],
    ['B', 'Other'],
    ['C', 'Apart'],
    ['D', 'Look'],
    ['E', 'Change'],
    ['F', 'Look'],
    ['G', 'Look']
  ])

  assert.deepEqual(
    results.map(result => result?.output),
    ['old', results[1]?.output, results[2]?.output, 'old', 'changed', 'new', 'new']
  )
  assert.equal(log.filter(line => line.startsWith('finished')).length, 7)
  content = 'old'
  const again = await run([
    ['H', 'Look'],
    ['I', 'Change'],
    ['J', 'Look']
  ])
  assert.deepEqual(
    again.map(result => result?.output),
    ['old', 'changed', 'new'],
    'right behind it'
  )
})

test('no arguments and an empty object are the same call', async t => {
  let runs = 0
  const { run } = await scene(t, [scripted({ name: 'Once', run: () => ({ output: `run ${++runs}` }) })])
  await run([
    ['A', 'Once', ''],
    ['B', 'Once', ' { } ']
  ])
  assert.equal(runs, 1)
})

test('what a call says after its end is told to nobody', async t => {
  let say: (update: ToolUpdate) => void = () => assert.fail('the call did not run')
  const late: Tool = {
    ...scripted({ name: 'Late' }),
    prepare: () => ({
      description: 'Late',
      accesses: [],
      run: async progress => {
        say = progress
        progress({ kind: 'stdout', text: 'in time' })
        return { output: 'done' }
      }
    })
  }
  const { run, reports } = await scene(t, [late])
  await run([['A', 'Late']])
  say({ kind: 'stdout', text: 'too late' })
  const told = reports.flatMap(report => (report.type === 'progress' ? [report.update] : []))
  assert.deepEqual(told, [{ kind: 'stdout', text: 'in time' }])
})

test('a call repeated step after step is reminded from the third time and stopped at the twelfth', async t => {
  const { run } = await scene(t, [scripted({ name: 'Again' })])
  const [notes, outputs] = [[] as string[], new Set<unknown>()]
  for (let step = 1; step <= 12; step++) {
    const [result] = await run([[`c${step}`, 'Again']])
    outputs.add(result?.output)
    notes.push(result?.note ?? '')
    assert.equal(result?.stop_turn, step === 12 ? true : undefined)
  }
  assert.equal(outputs.size, 1, 'what the tool says is of the tool alone')
  assert.equal(notes[1], '')
  assert.match(notes[2]!, /^<system-reminder>\n.*same call.*\n<\/system-reminder>$/)
  assert.match(notes[4]!, /5 times/)
  assert.match(notes[7]!, /final answer/)
})

test('another call between, or a new turn, ends the repetition', async t => {
  const { run } = await scene(t, [scripted({ name: 'Again' }), scripted({ name: 'Other' })])
  await run([['1', 'Again']])
  await run([['2', 'Again']])
  await run([['3', 'Other']])
  assert.equal((await run([['4', 'Again']]))[0]?.note, undefined)
  await run([['5', 'Again']])
  assert.equal((await run([['6', 'Again']], { turn_id: 1 }))[0]?.note, undefined)
})

test('a review settles a call that may run with a result of its own, or lets it run; a denied call is not reviewed', async t => {
  const seen: string[] = []
  const reviewed = (name: string, settles: boolean): Tool => {
    const tool = scripted({ name })
    return {
      ...tool,
      prepare: async (args, env) => ({
        ...(await tool.prepare(args, env)),
        check: async () => void seen.push(`check ${name}`),
        review: async () => {
          seen.push(`review ${name}`)
          return settles ? { output: 'not like this' } : undefined
        }
      })
    }
  }
  const { run, hooks, log } = await scene(t, [reviewed('Settled', true), reviewed('Runs', false), reviewed('Denied', true)])
  hooks.before.tapPromise('test', async ({ call }) => (call.name === 'Denied' ? { kind: 'deny', output: 'no' } : undefined))

  const results = await run([
    ['A', 'Settled'],
    ['B', 'Runs'],
    ['C', 'Denied']
  ])

  assert.deepEqual(results, [{ output: 'not like this' }, { output: 'Runs ' }, { output: 'no', is_error: true }])
  assert.deepEqual(seen, ['check Settled', 'review Settled', 'check Runs', 'review Runs'])
  assert.deepEqual(log.slice(0, 3), ['started A', 'started B', 'started C'])
})

test('an abort while a call is reviewed ends the wait', async t => {
  const control = new AbortController()
  const tool = scripted({ name: 'Asks' })
  const asks: Tool = {
    ...tool,
    prepare: async (args, env) => ({
      ...(await tool.prepare(args, env)),
      review: () => {
        setImmediate(() => control.abort())
        return new Promise(() => undefined)
      }
    })
  }
  const { run } = await scene(t, [asks], { abandonMs: 1 })
  const [result] = await run([['A', 'Asks']], { signal: control.signal })
  assert.match(String(result?.output), /aborted/)
})

test('a verdict that stops the turn skips the later calls and lets the earlier ones run', async t => {
  const { run, hooks, log } = await scene(t, [scripted({ name: 'One' }), scripted({ name: 'Two' }), scripted({ name: 'Three' })])
  hooks.before.tapPromise('test', async ({ call }) =>
    call.name === 'Two' ? { kind: 'deny', output: 'enough', stop_turn: true } : undefined
  )
  const [one, two, three] = await run([
    ['A', 'One'],
    ['B', 'Two'],
    ['C', 'Three']
  ])
  assert.equal(one?.is_error, undefined)
  assert.deepEqual(two, { output: 'enough', is_error: true, stop_turn: true })
  assert.match(String(three?.output), /skipped because a previous tool call stopped the turn/)
  assert.equal(log.filter(line => line.startsWith('started')).length, 3)
})

test('a result that stops the turn skips the calls that wait for it', async t => {
  const { run } = await scene(t, [
    scripted({ name: 'One', accesses: () => [{ kind: 'exclusive' }], run: async () => ({ output: 'enough', stop_turn: true }) }),
    scripted({ name: 'Two', accesses: () => [{ kind: 'exclusive' }], run: () => assert.fail('must not run') })
  ])
  const [one, two] = await run([
    ['A', 'One'],
    ['B', 'Two']
  ])
  assert.deepEqual(one, { output: 'enough', stop_turn: true })
  assert.match(String(two?.output), /skipped because a previous tool call stopped the turn/)
})

test('an abort reaches the running call, an ignored one is abandoned, and finished results stay', async t => {
  const control = new AbortController()
  let heard = false
  const { run } = await scene(
    t,
    [
      scripted({ name: 'Done' }),
      scripted({
        name: 'Deaf',
        run: (_args, signal) => {
          signal.addEventListener('abort', () => {
            heard = true
          })
          control.abort(Object.assign(new Error('stop'), { name: 'UserAbort' }))
          return new Promise(() => undefined)
        }
      }),
      scripted({ name: 'Later', accesses: () => [{ kind: 'exclusive' }] })
    ],
    { abandonMs: 1 }
  )
  const [done, deaf, later] = await run(
    [
      ['A', 'Done'],
      ['B', 'Deaf'],
      ['C', 'Later']
    ],
    { signal: control.signal }
  )
  assert.equal(done?.is_error, undefined)
  assert.equal(heard, true)
  assert.match(String(deaf?.output), /interrupted this tool call on purpose/)
  assert.equal(later?.is_error, true)
})

test('another abort says whether the call that it ended was at work', async t => {
  const control = new AbortController()
  const shutDown = () => {
    control.abort(new Error('shutdown'))
    return { output: 'cut', is_error: true }
  }
  const { run } = await scene(t, [scripted({ name: 'One', run: shutDown }), scripted({ name: 'Two' })])
  const results = await run(
    [
      ['A', 'One'],
      ['B', 'Two']
    ],
    { signal: control.signal }
  )
  const [late] = await run([['C', 'Two']], { signal: control.signal })
  assert.deepEqual(
    [...results, late].map(result => String(result?.output).split('\n')[0]),
    [
      'The tool call was aborted before it finished.',
      'The tool call was aborted before it began, and had no effect.',
      'The tool call was aborted before it began, and had no effect.'
    ]
  )
})

test('a long result is kept on disk and shortened for the model', async t => {
  const text = 'x'.repeat(60_000)
  const { run } = await scene(t, [scripted({ name: 'Long', run: () => ({ output: text }) })])
  const [result] = await run([['A', 'Long']])
  const output = String(result?.output)
  assert.ok(output.length < 3_000)
  const path = /saved to (\S+)/.exec(output)?.[1] ?? ''
  assert.equal(await readFile(path, 'utf8'), text)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.equal((await stat(dirname(path))).mode & 0o777, 0o700)
})

test('a result of exactly 50000 characters goes to the model as it is, one more does not', async t => {
  const lengths = [50_000, 50_001]
  const { run } = await scene(
    t,
    lengths.map(length => scripted({ name: `Of${length}`, run: () => ({ output: 'x'.repeat(length) }) }))
  )
  const results = await run([
    ['A', 'Of50000'],
    ['B', 'Of50001']
  ])
  assert.deepEqual(
    results.map(({ truncated = false }) => truncated),
    [false, true]
  )
})

test('a call that was given up has one result: what it says later, and a late end, reach nobody', async t => {
  const control = new AbortController()
  const late = latch()
  const told = latch()
  const deaf = {
    ...scripted({ name: 'Deaf' }),
    prepare: () => ({
      description: 'Deaf',
      accesses: [],
      run: async (progress: (update: ToolUpdate) => void) => {
        control.abort(new Error('shutdown'))
        await late.opened
        progress({ kind: 'status', text: 'late' })
        queueMicrotask(() => told.open())
        return { output: 'late' }
      }
    })
  }
  const { run, log } = await scene(t, [deaf], { abandonMs: 1 })
  const [result] = await run([['A', 'Deaf']], { signal: control.signal })
  late.open()
  await told.opened
  await new Promise(setImmediate)
  assert.match(String(result?.output), /was aborted/)
  assert.deepEqual(log, ['started A', 'finished A'])
})

test('an empty result says so, and a result of media only gets a leading text', async t => {
  const image = { type: 'image' as const, media_type: 'image/png', data: 'AA==' }
  const { run } = await scene(t, [
    scripted({ name: 'Empty', run: () => ({ output: ' \n' }) }),
    scripted({ name: 'Media', run: () => ({ output: [image] }) })
  ])
  const [empty, media] = await run([
    ['A', 'Empty'],
    ['B', 'Media']
  ])
  assert.match(String(empty?.output), /empty/)
  assert.equal(Array.isArray(media?.output) && media.output[0]?.type, 'text')
})

test('after-hooks shape the result, also of denied calls', async t => {
  const { run, hooks } = await scene(t, [scripted({ name: 'One' }), scripted({ name: 'Two' })])
  hooks.before.tapPromise('test', async ({ call }) => (call.name === 'Two' ? { kind: 'deny', output: 'no' } : undefined))
  hooks.after.tapPromise('test', async result => ({ ...result, output: `${result.output}!` }))
  const [one, two] = await run([
    ['A', 'One'],
    ['B', 'Two']
  ])
  assert.equal(one?.output, 'One !')
  assert.equal(two?.output, 'no!')
})

test('a policy hides a tool from the model and fails its calls', async t => {
  const { run } = await scene(t, [scripted({ name: 'One' })], { policies: [{ name: 'test', refuses: () => 'switched off' }] })
  assert.deepEqual(await run([['A', 'One']]), [{ output: 'switched off', is_error: true }])
})

test('a call that takes longer than it may is ended, its limit or the general one', async t => {
  const forever = scripted({
    name: 'Polite',
    run: (_args, signal) =>
      new Promise(resolve => signal.addEventListener('abort', () => resolve({ output: 'half of it', is_error: true })))
  })
  const deaf = scripted({ name: 'Deaf', run: () => new Promise(() => undefined) })
  const own: Tool = { ...deaf, name: 'Own', prepare: async (args, env) => ({ ...(await deaf.prepare(args, env)), limit_ms: 2 }) }
  const { run } = await scene(t, [forever, deaf, own], { abandonMs: 1, callLimitMs: 3 })
  const results = await run([
    ['A', 'Polite'],
    ['B', 'Deaf'],
    ['C', 'Own']
  ])
  assert.deepEqual(
    results.map(({ is_error }) => is_error),
    [true, true, true]
  )
  const texts = results.map(({ output }) => String(output))
  assert.match(texts[0] ?? '', /longer than 0\.003 s[\s\S]*half of it/)
  assert.match(texts[1] ?? '', /longer than 0\.003 s/)
  assert.match(texts[2] ?? '', /longer than 0\.002 s/)
})

test('a guard, a preparation or a check that hangs refuses the call; a hook behind it has no say', async t => {
  const never = new Promise<never>(() => undefined)
  const fine = scripted({ name: 'Fine' })
  const deaf: Tool = { ...fine, name: 'Deaf', prepare: () => never }
  const unchecked: Tool = {
    ...fine,
    name: 'Unchecked',
    prepare: async (args, env) => ({ ...(await fine.prepare(args, env)), check: () => never, review: async () => undefined })
  }
  const { run, hooks } = await scene(t, [fine, deaf, unchecked], { hookLimitMs: 3 })
  hooks.after.tapPromise('slow', () => never)
  const [prepared, checked, ran] = await run([
    ['A', 'Deaf'],
    ['B', 'Unchecked'],
    ['C', 'Fine']
  ])
  assert.match(String(prepared?.output), /the preparation of Deaf took longer/)
  assert.match(String(checked?.output), /the check of Unchecked took longer/)
  assert.deepEqual(ran, { output: 'Fine ' })
  hooks.before.tapPromise('slow', () => never)
  const [guarded] = await run([['D', 'Fine', '{"path":"x"}']])
  assert.match(String(guarded?.output), /the guard slow took longer/)
  assert.equal(guarded?.is_error, true)
})
