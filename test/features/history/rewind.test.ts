/** Undo: which turns can be taken back, and what packs keep goes back with them; live and after a restart the same. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CoreRecord, History, HistoryRecord, StateSpec } from '../../../features/history/index.ts'
import { rewindable } from '../../../features/history/rewind.ts'
import { memoryLog, openHistory } from '../../helpers/memory-history.ts'

const text = (value: string) => [{ type: 'text', text: value }]
const user = { kind: 'user' }

/** A list that is replaced as a whole; undo takes it back. */
const list: StateSpec<readonly string[]> = {
  name: 'list',
  version: 1,
  rewinds: true,
  initial: () => [],
  reduce: (state, record) => (record.type === 'list' ? (record.items as readonly string[]) : state)
}
/** The same list, which undo leaves alone. */
const kept: StateSpec<readonly string[]> = { ...list, name: 'kept', rewinds: false }
const items = (...given: string[]): HistoryRecord => ({ type: 'list', items: given })

/** A turn of the user, whose answer took so many tokens; `during` is recorded in it. */
function turn(id: number, tokens: number, ...during: HistoryRecord[]): HistoryRecord[] {
  const prompt_id = `p${id}`
  return [
    { type: 'prompt.accepted', prompt_id, content: text(`prompt ${id}`), origin: user },
    { type: 'turn.started', turn_id: id, origin: user, prompt_id },
    { type: 'message', role: 'user', turn_id: id, origin: user, id: prompt_id, prompt_id },
    { type: 'step.begin', turn_id: id, step: 1, step_id: `s${id}` },
    ...during,
    { type: 'step.message', turn_id: id, step: 1, content: text(`answer ${id}`), tool_calls: [] },
    {
      type: 'step.end',
      turn_id: id,
      step: 1,
      reason: 'end_turn',
      usage: { inputOther: tokens, output: 0, inputCacheRead: 0, inputCacheCreation: 0 }
    },
    { type: 'turn.ended', turn_id: id, reason: 'completed' },
    { type: 'prompt.settled', prompt_ids: [prompt_id], status: 'completed', turn_id: id }
  ]
}
const undone = (from: number): CoreRecord => ({ type: 'context.undone', from, context_tokens: 0 })
const compacted: CoreRecord = { type: 'context.compacted', messages: [{ role: 'user', content: text('summary') }] }

async function opened(log = memoryLog()) {
  const history = await openHistory(log, { states: [list, kept] })
  return { log, history, list: await history.track(list), kept: await history.track(kept) }
}
const froms = (history: History) => history.undoable().turns.map(({ from }) => from)

test('a state that undo rewinds is what it was before the turn that is taken back, also after a restart', async () => {
  const live = await opened()
  await live.history.append(...turn(0, 100, items('a')))
  await live.history.append(items('a', 'between'))
  await live.history.append(...turn(1, 200, items('b')), ...turn(2, 300, items('c')))
  const { turns } = live.history.undoable()
  assert.deepEqual(
    turns.map(({ tokens }) => tokens),
    [0, 100, 200]
  )

  await live.history.append(undone(turns[1]!.from))

  for (const { history, list, kept } of [live, await opened(live.log)]) {
    assert.deepEqual(list.value, ['a', 'between'])
    assert.deepEqual(kept.value, ['c'])
    assert.equal(history.contextTokens(), 100)
    assert.deepEqual(froms(history), [0])
    assert.equal((await history.project()).length, 2)
    assert.deepEqual(history.usage().inputOther, 600)
  }
})

test('what comes after an undo is taken back by the next one, and what was taken back stays away', async () => {
  const { history, list } = await opened()
  await history.append(...turn(0, 100, items('a')), ...turn(1, 200, items('b')))
  await history.append(undone(froms(history)[1]!), ...turn(2, 300, items('c')))
  assert.deepEqual([list.value, froms(history)], [['c'], [0, 4]])

  await history.append(undone(4))
  assert.deepEqual(list.value, ['a'])
  await history.append(undone(0))
  assert.deepEqual([list.value, history.undoable()], [[], { turns: [], end: 'beginning' }])
})

test('prompts that were steered into a turn and turns that nobody prompted go with the turn before them', async () => {
  const { history } = await opened()
  const [accepted, started, message, ...rest] = turn(0, 100)
  await history.append(accepted!, started!, message!)
  await history.append({
    type: 'message',
    role: 'user',
    turn_id: 0,
    origin: user,
    id: 'steered',
    prompt_id: 'steered',
    content: text('more')
  })
  await history.append(...rest)
  await history.append({ type: 'turn.started', turn_id: 1, origin: { kind: 'task' } })
  await history.append({ type: 'message', role: 'user', turn_id: 1, origin: { kind: 'task' }, id: 'notice', content: text('done') })
  const skill = { kind: 'skill_activation', trigger: 'user-slash' }
  await history.append({ type: 'message', role: 'user', origin: skill, id: 'skill', content: text('do it') })
  await history.append({ type: 'message', role: 'user', origin: { ...skill, trigger: 'model-tool' }, content: text('rules') })

  assert.deepEqual(froms(history), [0, 4])
})

test('a compaction is the end of what can be taken back, and nothing before it is remembered', async () => {
  const { history, list, log } = await opened()
  await history.append(...turn(0, 100, items('a')), items('b'), compacted, ...turn(1, 50, items('c')))
  assert.deepEqual(history.undoable().end, 'compaction')
  assert.equal(history.compactions(), 1)
  const [from] = froms(history)

  await history.append(undone(from!))

  assert.deepEqual(list.value, ['b'])
  assert.deepEqual(history.undoable(), { turns: [], end: 'compaction' })
  assert.deepEqual((await opened(log)).list.value, ['b'])
})

test('reminders that are left count again, with the newest of each kind', async () => {
  const { history } = await opened()
  const say = (day: number): CoreRecord => ({
    type: 'message',
    role: 'user',
    content: text('now'),
    origin: { kind: 'injection', variant: 'date', day }
  })
  await history.append(...turn(0, 100, say(1)), ...turn(1, 100, say(2)))
  assert.equal(history.reminder('date')?.day, 2)

  await history.append(undone(froms(history)[1]!))

  assert.equal(history.reminder('date')?.day, 1)
  await history.append(undone(0))
  assert.equal(history.reminder('date'), undefined)

  await history.append(...Array.from({ length: 40 }, (_, day) => say(day)))
  assert.equal(history.reminder('date')?.day, 39)
})

test('of very many inputs the oldest cannot be taken back, which the state says; what is kept is exact', () => {
  const spec = rewindable(list, 8)
  let state = spec.initial()
  for (let n = 0; n < 20; n++) {
    state = spec.reduce(state, { type: 'message', role: 'user', content: text('go'), number: n })
    state = spec.reduce(state, items(`${n}`))
    state = spec.reduce(state, items(`${n}`, 'again'))
  }
  assert.ok(state.earlier.length <= 8)
  assert.ok(state.floor > 0 && state.floor < 20)
  for (let from = 20; from >= state.floor; from--) {
    const back = spec.reduce(state, undone(from))
    assert.deepEqual(back.value, [`${from - 1}`, 'again'])
    assert.deepEqual(spec.load?.(JSON.parse(JSON.stringify(spec.save?.(back)))), back)
  }
})

test('what the begin of a turn changed goes with the turn', async () => {
  const turns: StateSpec<number> = {
    name: 'turns',
    version: 1,
    rewinds: true,
    initial: () => 0,
    reduce: (count, record) => (record.type === 'turn.started' ? count + 1 : count)
  }
  const { history } = await opened()
  const count = await history.track(turns)
  await history.append(...turn(0, 100), ...turn(1, 100))

  await history.append(undone(froms(history)[1]!))

  assert.equal(count.value, 1)
})

test('a very long conversation offers its newest 2000 turns', async () => {
  const { history } = await opened()
  for (let n = 0; n < 2010; n++) await history.append(...turn(n, 100, items(`${n}`)))

  const { turns, end } = history.undoable()

  assert.deepEqual([turns.length, end], [2000, 'lost'])
})

test('whatever happens in which order: a state is what it was, live and after a restart, with and without checkpoints', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    let state = seed * 7919
    const dice = (sides: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return (state >> 8) % sides
    }
    const log = memoryLog()
    const ports = { states: [list, kept], checkpoints: { bytes: 8, share: 1 } }
    let history = await openHistory(log, ports)
    let value: string[] = []
    let before: string[][] = []
    for (let at = 0; at < 60; at++) {
      const change = [`${seed}.${at}`]
      const what = dice(10)
      if (what < 3) {
        value = change
        await history.append(items(...value))
      } else if (what < 6) {
        before.push(value)
        const changes = dice(2) > 0 ? [items(`${at}`), items(...change)] : []
        if (changes.length > 0) value = change
        await history.append(...turn(at, 100, ...changes))
      } else if (what === 6) {
        await history.append(compacted)
        before = []
      } else if (what === 7) history = await openHistory(log, ports)
      else if (before.length > 0) {
        const count = 1 + dice(before.length)
        await history.append(undone(froms(history).at(-count)!))
        value = before.at(-count)!
        before = before.slice(0, -count)
      }
      assert.deepEqual((await history.track(list)).value, value, `seed ${seed}, ${at}`)
      assert.equal(froms(history).length, before.length, `seed ${seed}, ${at}`)
    }
    const again = await openHistory(log, ports)
    assert.deepEqual((await again.track(list)).value, value)
    assert.deepEqual(again.undoable(), history.undoable())
    assert.deepEqual(await again.project(), await history.project())
  }
})
