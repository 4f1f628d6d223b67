import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineEvent, Type } from '../../kernel/index.ts'
import type { Frame } from '../../kernel/testing.ts'
import { startHub } from '../helpers/hub.ts'
import { latch } from '../helpers/latch.ts'
import { journalsOf, MemoryJournal } from '../helpers/memory-journals.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })

/** A journal whose first write fails when it is told to, and that keeps every line it took. */
class BrokenOnce extends MemoryJournal {
  readonly fail = latch()
  readonly asked = latch()
  readonly taken: Frame[] = []
  #broken = true

  override async append(lines: readonly Uint8Array[]): Promise<void> {
    this.asked.open()
    if (this.#broken) {
      await this.fail.opened
      this.#broken = false
      throw new Error('no space left')
    }
    for (const line of lines) this.taken.push(JSON.parse(Buffer.from(line).toString()) as Frame)
    await super.append(lines)
  }
}

test('events that a failed write costs, and those numbered meanwhile, go out live in the epoch that follows, and not into its record', async t => {
  const journal = new BrokenOnce()
  const { hub, connect } = await startHub(t, { journals: journalsOf(journal) })
  const { epoch } = await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { text: 'a' }, 's1')
  await journal.asked.opened
  hub.emit(noted, { text: 'b' }, 's1')
  assert.equal(client.frames.filter(frame => frame.type === noted.type).length, 0, 'nothing goes out before the disk has it')
  journal.fail.open()
  await client.next(frame => frame.payload?.text === 'b')
  hub.emit(noted, { text: 'c' }, 's1')
  await client.next(frame => frame.payload?.text === 'c')
  const seen = client.frames.filter(frame => frame.type === noted.type).map(frame => [frame.seq, frame.epoch, frame.payload.text])
  assert.notEqual(journal.epoch, epoch)
  assert.deepEqual(seen, [
    [1, journal.epoch, 'a'],
    [2, journal.epoch, 'b'],
    [3, journal.epoch, 'c']
  ])
  assert.deepEqual(
    journal.taken.map(frame => [frame.seq, frame.epoch]),
    [[3, journal.epoch]]
  )
})
