import assert from 'node:assert/strict'
import { appendFile, open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { wireStore } from '../../../features/history/contract.ts'
import { copyJournal, type JournalCopy } from '../../../features/history/copy.ts'
import type { AgentHistory, HistoryPorts } from '../../../features/history/history.ts'
import type { HistoryRecord, RecordEvents } from '../../../features/history/index.ts'
import type { LogStore } from '../../../kernel/index.ts'
import { createStorage } from '../../../kernel/storage/index.ts'
import { countFlushes } from '../../helpers/flushes.ts'
import { memoryLog, openHistory } from '../../helpers/memory-history.ts'
import { freshDir, warnings } from '../../helpers/temp.ts'
import { eventsOf, session_id, sum, World } from './world.ts'

const text = (value: string) => [{ type: 'text', text: value }]
const note = (n: number, value = `note ${n}`): HistoryRecord => ({ type: 'message', role: 'user', content: text(value), n })
const notes = (count: number, from = 0) => Array.from({ length: count }, (_, n) => note(from + n))
const accepted = (prompt_id: string): HistoryRecord => ({ type: 'prompt.accepted', prompt_id, content: text(`wish of ${prompt_id}`) })
const promptMessage = (id: string): HistoryRecord => ({ type: 'message', id, role: 'user', prompt_id: id, origin: { kind: 'user' } })
const idOf = (n: number) => `msg_${session_id}_${String(n).padStart(6, '0')}`

interface Files {
  readonly file: string
  readonly log: LogStore<{ type: string; time?: number }>
  open(ports?: Partial<HistoryPorts> & { events?: RecordEvents['events']; told?: string[] }): Promise<AgentHistory>
  lines(): Promise<string[]>
}

async function onFiles(t: { after(fn: () => unknown): void }): Promise<Files> {
  const home = await freshDir()
  const storage = createStorage({ home, log: warnings() })
  t.after(() => storage.close())
  const log = storage.open(wireStore, { namespace: '', dir: 'agent' })
  const file = join(home, 'agent', 'wire.jsonl')
  return {
    file,
    log,
    open: ports => openHistory({ ...log, lines: [], refuse: false }, ports),
    lines: async () => (await readFile(file, 'utf8')).trimEnd().split('\n')
  }
}

/** Overwrites the middle of a line. */
async function damage(file: string, found: string): Promise<void> {
  const at = (await readFile(file)).indexOf(found)
  assert.ok(at > 0)
  const handle = await open(file, 'r+')
  await handle.write(Buffer.from('"#'), 0, 2, at)
  await handle.close()
}

async function pagedIds(history: AgentHistory, size: number): Promise<string[]> {
  const ids: string[] = []
  for (let before: string | undefined; ; before = ids[0]) {
    const { messages, has_more } = await history.messages.page({ size, before })
    ids.unshift(...messages.map(({ id }) => id))
    if (!has_more) return ids
  }
}

for (const checkpoints of [undefined, { bytes: 1000, share: 1 }]) {
  test(`a damaged message is missing, and the others keep their ids (${checkpoints ? 'with' : 'without'} checkpoints)`, async t => {
    const { file, log, open } = await onFiles(t)
    const before = await open({ checkpoints })
    for (const one of notes(300)) await before.append(one)
    await before.close()
    await damage(file, 'note 100"')
    await damage(file, 'note 290"')

    const history = await open({ checkpoints })

    const left = Array.from({ length: 300 }, (_, n) => n).filter(n => n !== 100 && n !== 290)
    assert.deepEqual(await pagedIds(history, 7), left.map(idOf))
    assert.deepEqual(await pagedIds(history, 500), left.map(idOf))
    for (const n of [0, 99, 101, 289, 291, 299]) {
      assert.deepEqual((await history.messages.find(idOf(n)))?.content, text(`note ${n}`))
    }
    assert.equal(await history.messages.find(idOf(100)), undefined)
    assert.equal((await history.project()).length, 1) // submissions in a row
    await history.append(note(300))
    assert.equal((await history.messages.page({ size: 1 })).messages[0]?.id, idOf(300))
    await log.release('wire')
  })
}

test('a torn last record is gone, and the next one follows what was whole', async t => {
  const { file, open, lines } = await onFiles(t)
  const before = await open()
  for (const one of notes(3)) await before.append(one)
  await before.close()
  await appendFile(file, '{"type":"message","role":"user","content":[{"type":"te')

  const history = await open()
  assert.deepEqual(await pagedIds(history, 2), [0, 1, 2].map(idOf))
  await history.append(note(3))

  assert.deepEqual(await pagedIds(history, 2), [0, 1, 2, 3].map(idOf))
  assert.ok((await lines()).every(line => typeof JSON.parse(line) === 'object'))
})

test('a power failure that takes the events behind a checkpoint has them told again', async () => {
  const world = await World.open(memoryLog())
  for (const one of notes(60, 1)) {
    await world.history.append(one)
    world.flush()
  }
  const all = [...world.events]

  await world.kill(40)

  assert.deepEqual(world.events, all)
  await world.history.append(note(61))
  assert.equal(world.events.length, all.length + eventsOf(note(61), { prompts: new Map(), openCalls: new Map(), begun: new Set() }).length)
})

test('a journal of version 1.0 opens: nothing of it is told, what follows is', async () => {
  const log = memoryLog()
  const old = [{ type: 'metadata', protocol_version: '1.0', created_at: 0 }, accepted('p1'), promptMessage('p1'), ...notes(200, 1)]
  for (const record of old) log.lines.push(JSON.stringify({ ...record, time: 5 }))
  const told: string[] = []
  const ports = { events: eventsOf, told, given: () => ({ seq: 0, epoch: 'e' }), written: () => ({ seq: 0, epoch: 'e' }) }

  const history = await openHistory(log, ports)
  await history.recover()
  assert.deepEqual(told, [])
  assert.deepEqual(await pagedIds(history, 50), ['p1', ...notes(200).map((_, n) => idOf(n + 1))])
  assert.deepEqual((await history.messages.find('p1'))?.content, text('wish of p1'))

  await history.append(note(1))
  assert.deepEqual(told, ['of.message'])
  const again = await openHistory(log, ports)
  await again.recover()
  assert.equal((await again.messages.page({ size: 1 })).messages[0]?.id, idOf(201))
})

test('a checkpoint of another version is of no use: states and events come from the records', async () => {
  const log = memoryLog()
  const told: string[] = []
  const options = { events: eventsOf, checkpoints: { bytes: 5, share: 1 }, told }
  const before = await openHistory(log, options)
  await before.append(accepted('p1'))
  for (const one of notes(20, 5)) await before.append(one)
  const made = log.lines.filter(line => line.includes('"checkpoint"')).length
  assert.ok(made > 1)
  for (const [at, line] of log.lines.entries()) {
    const record = JSON.parse(line) as HistoryRecord & { states?: { conversation?: { version: number } } }
    if (record.type !== 'checkpoint' || !record.states?.conversation) continue
    record.states.conversation.version = 0
    log.lines[at] = JSON.stringify(record)
  }
  const payloads: unknown[] = []

  const after = await openHistory(log, { ...options, eventsAfter: async () => [], tell: event => void payloads.push(event.payload) })
  await after.recover()

  assert.deepEqual(await after.messages.page({ size: 50 }), await before.messages.page({ size: 50 }))
  assert.equal(after.prompt('p1')?.status, 'queued')
  assert.deepEqual(new Set(payloads.map(payload => (payload as { prompts: number }).prompts)), new Set([1]))
})

test('a prompt that waited long has its content: in pages, and for the model, also after a compaction', async t => {
  const { open } = await onFiles(t)
  const checkpoints = { bytes: 2000, share: 1 }
  const live = await open({ checkpoints })
  await live.append(accepted('p1'), accepted('p2'))
  for (const one of notes(200)) await live.append(one)
  await live.append({ type: 'context.compacted', messages: [{ role: 'user', content: text('summary') }] })
  const between = await open({ checkpoints })
  await between.project()
  for (const history of [live, between]) assert.deepEqual((await history.prompt('p1'))?.content, text('wish of p1'))
  await between.append(promptMessage('p1'), { type: 'prompt.settled', prompt_ids: ['p1'], status: 'completed' })
  for (const one of notes(200)) await between.append(one)

  for (const history of [between, await open({ checkpoints })]) {
    assert.deepEqual((await history.messages.find('p1'))?.content, text('wish of p1'))
    const around = await history.messages.page({ before: idOf(210), size: 20 })
    assert.deepEqual(around.messages.find(({ id }) => id === 'p1')?.content, text('wish of p1'))
    assert.match(JSON.stringify((await history.project()).slice(0, 2)), /summary.*wish of p1/)
    assert.deepEqual(
      history.prompts().map(({ prompt_id, content }) => [prompt_id, content.length]),
      [
        ['p1', 0],
        ['p2', 1]
      ]
    )
  }
})

test('what was taken back stays away, and its ids are not given again', async () => {
  const log = memoryLog()
  const history = await openHistory(log)
  for (const one of notes(5)) await history.append(one)
  await history.append({ type: 'context.undone', from: 2, context_tokens: 7 })
  await history.append({ type: 'context.undone', from: 3, context_tokens: 7 }) // within what was taken back before
  await history.append(note(9))

  for (const each of [history, await openHistory(log)]) {
    assert.deepEqual(await pagedIds(each, 2), [0, 1, 5].map(idOf))
    assert.equal(each.messages.count(), 3)
    assert.equal(await each.messages.find(idOf(3)), undefined)
    assert.deepEqual(
      (await each.messages.page({ after: idOf(1), size: 5 })).messages.map(({ id }) => id),
      [idOf(5)]
    )
  }
})

test('a state of a pack that comes later is the same as one that was there from the beginning', async t => {
  const { open } = await onFiles(t)
  const checkpoints = { bytes: 500, share: 1 }
  const states = [sum('early')]
  const first = await open({ checkpoints, states })
  for (const one of notes(40)) await first.append(one)
  const second = await open({ checkpoints })
  const late = second.track(sum('late'))
  const meanwhile = second.append(note(1000))
  for (const one of notes(40)) await second.append(one)
  await meanwhile

  for (const history of [second, await open({ checkpoints, states })]) {
    assert.equal((await history.track(sum('early'))).value, 1000 + 2 * 780)
    assert.equal((await history.track(sum('late'))).value, (await late).value)
    assert.equal((await history.track(sum('late'))).value, 1000 + 2 * 780)
  }
})

test('a history of 100 MB is opened and paged without holding it', async t => {
  const { file, log, open: start } = await onFiles(t)
  await (await start()).append(...notes(1))
  await log.release('wire')
  const filler = 'some words of a result '.repeat(900)
  for (let n = 1; n < 5000; n += 500) {
    const some = notes(500, n).map((record, at) => JSON.stringify({ ...record, number: n + at, content: text(filler), time: n + at }))
    await appendFile(file, `${some.join('\n')}\n`)
  }
  const before = heap()

  const history = await start()
  const pages = []
  for (const n of [5000, 2500, 60]) pages.push(await history.messages.page({ before: idOf(n), size: 20 }))

  assert.deepEqual(
    pages.map(page => page.messages.at(-1)?.id),
    [4999, 2499, 59].map(idOf)
  )
  pages.length = 0
  const grown = heap() - before
  assert.ok(grown < 8, `${grown} MB`)
  assert.equal(history.messages.count(), 5001)
})

/** Live objects, MB. */
function heap(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1024 / 1024
}

test('a copy is on the medium before anything is written behind it', async t => {
  const [from, to] = [await freshDir(), join(await freshDir(), 'copy')]
  await writeFile(join(from, 'wire.jsonl'), 'one\n')
  const steps: string[] = []
  const flushes = await countFlushes(t, steps)
  const append = async (_id: string, ...records: object[]) => ({ end: steps.push(`append ${records.length}`) })
  const logs = { source: {}, target: { append, release: async () => undefined } } as unknown as Pick<JournalCopy, 'source' | 'target'>

  await copyJournal({ from, to, ...logs, end: 4, now: () => new Date(0) }, [])

  assert.deepEqual(steps, ['flush', 'append 0', 'append 1'])
  assert.equal(flushes(), 1)
})

test('a copy ends where it is to end, whatever got on record behind that meanwhile', async () => {
  const [from, to] = [await freshDir(), join(await freshDir(), 'copy')]
  await writeFile(join(from, 'wire.jsonl'), 'one\ntwo\n')
  const told: object[] = []
  const append = async (_id: string, ...records: object[]) => ({ end: 100 * told.push(...records) })
  const target = { append, release: async () => undefined }
  const logs = { source: target, target } as unknown as Pick<JournalCopy, 'source' | 'target'>
  await copyJournal({ from, to, ...logs, end: 4, now: () => new Date(0) }, [])
  assert.equal(await readFile(join(to, 'wire.jsonl'), 'utf8'), 'one\n')
  const mark = { type: 'told', seq: 0, epoch: '', time: 0 }
  assert.deepEqual(told.splice(0), [{ ...mark, at: 4 }])
  // What is put behind it counts as told, too.
  await copyJournal({ from, to: join(await freshDir(), 'copy'), ...logs, end: 4, now: () => new Date(0) }, [{ type: 'note' }])
  assert.deepEqual(told, [
    { type: 'note', time: 0 },
    { ...mark, at: 100 }
  ])
})
