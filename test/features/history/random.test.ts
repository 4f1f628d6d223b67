import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { wireStore } from '../../../features/history/contract.ts'
import type { Conversation } from '../../../features/history/conversation.ts'
import { conversationState, saveConversation } from '../../../features/history/conversation-saved.ts'
import type { HistoryMessage, HistoryRecord } from '../../../features/history/index.ts'
import { createStorage } from '../../../kernel/storage/index.ts'
import { silent } from '../../features/tools/fakes.ts'
import { memoryLog } from '../../helpers/memory-history.ts'
import { freshDir } from '../../helpers/temp.ts'
import { Naive } from './naive.ts'
import { session_id, sum, World } from './world.ts'

/** What happens next; numbers choose among what is there. */
type Act =
  | { readonly act: 'append'; readonly kinds: readonly (readonly [Kind, number])[] }
  /** Appends at one instant; of some the disk takes nothing. */
  | {
      readonly act: 'together'
      readonly batches: readonly { readonly kinds: readonly (readonly [Kind, number])[]; readonly refused: boolean }[]
    }
  | { readonly act: 'untold'; readonly kinds: readonly (readonly [Kind, number])[] }
  | { readonly act: 'page'; readonly size: number; readonly pivot: number; readonly before: boolean }
  | { readonly act: 'power'; readonly lost: number }
  | { readonly act: 'project' | 'flush' | 'reopen' | 'kill' }

const kinds = ['accepted', 'prompt', 'note', 'answer', 'result', 'settled', 'turn', 'usage', 'other', 'compacted', 'undone'] as const
type Kind = (typeof kinds)[number]

const kind = fc.tuple(fc.constantFrom<Kind[]>(...kinds, 'accepted', 'answer', 'result', 'prompt'), fc.nat(1000))
const some = fc.array(kind, { minLength: 1, maxLength: 3 })
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ act: fc.constant('append' as const), kinds: some }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('together' as const),
      batches: fc.array(fc.record({ kinds: some, refused: fc.boolean() }), { minLength: 1, maxLength: 3 })
    })
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('untold' as const), kinds: some }) },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant('page' as const),
      size: fc.integer({ min: 1, max: 9 }),
      pivot: fc.nat(200),
      before: fc.boolean()
    })
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('power' as const), lost: fc.nat(12) }) },
  { weight: 5, arbitrary: fc.record({ act: fc.constantFrom('project' as const, 'flush' as const, 'reopen' as const, 'kill' as const) }) }
)

const text = (value: string) => [{ type: 'text', text: value }]

/** Makes records that a conversation might have next, and plays the acts. */
class Play {
  readonly world: World
  readonly #read: () => Promise<readonly HistoryRecord[]>
  #n = 0
  #prompts: string[] = []
  /** Every id that a message ever had, and the record that had it. */
  readonly #seen = new Map<string, number>()
  /** The records that were acknowledged. */
  readonly #accepted: number[] = []

  constructor(world: World, read: () => Promise<readonly HistoryRecord[]>) {
    this.world = world
    this.#read = read
  }

  async play(acts: readonly Act[]): Promise<void> {
    for (const each of acts) await this.#do(each)
    await this.#compare()
    await this.world.kill()
    await this.#compare()
  }

  async #do(each: Act): Promise<void> {
    const { world } = this
    switch (each.act) {
      case 'append': {
        const { records } = await this.#naive()
        const known = Number(records.findLast(({ type }) => type === 'context.compacted')?.number ?? -1)
        return await this.#append(each.kinds, false, known + 1)
      }
      case 'together': {
        await Promise.all(each.batches.map(({ kinds, refused }) => this.#append(kinds, refused)))
        return await this.#compare()
      }
      case 'untold': {
        const records = this.#records(each.kinds)
        await world.history.write(...records)
        this.#accepted.push(...records.map(({ n }) => Number(n)))
        return await world.kill()
      }
      case 'page':
        return await this.#page(each)
      case 'power':
        await world.kill(each.lost)
        return await this.#compare()
      case 'flush':
        return world.flush()
      case 'project': {
        const projected = await world.history.project()
        assert.deepEqual(projected, (await this.#naive()).context())
        return
      }
      case 'reopen':
        await world.reopen()
        return await this.#compare()
      case 'kill':
        await world.kill()
        return await this.#compare()
    }
  }

  /** `since`: number of the first message behind the last compaction, where that is known: some of those may stay behind another one. */
  async #append(given: readonly (readonly [Kind, number])[], refused: boolean, since?: number): Promise<void> {
    const made = this.#records(given)
    const first = made[0]
    if (since !== undefined && first?.type === 'context.compacted' && given[0]![1] % 3 > 0)
      made[0] = { ...first, rest: { from: since + (given[0]![1] % 8), tokens: 7 } }
    const records = made.map(record => (refused ? { ...record, refused } : record))
    if (refused) return await assert.rejects(this.world.history.append(...records), /disk full/)
    await this.world.history.append(...records)
    this.#accepted.push(...records.map(({ n }) => Number(n)))
  }

  #records(given: readonly (readonly [Kind, number])[]): HistoryRecord[] {
    return given.map(([kind, choice]) => ({ ...this.#record(kind, choice), n: ++this.#n }))
  }

  #record(kind: Kind, choice: number): HistoryRecord {
    const n = this.#n
    const prompt_id = this.#prompts[choice % Math.max(1, this.#prompts.length)] ?? 'none'
    const at = { turn_id: choice % 4, step: choice % 3 }
    switch (kind) {
      case 'accepted':
        this.#prompts.push(`prompt_${n}`)
        return { type: 'prompt.accepted', prompt_id: `prompt_${n}`, content: text(`wish ${n}`) }
      case 'prompt':
        this.#prompts = this.#prompts.filter(id => id !== prompt_id)
        return { type: 'message', id: `msg_${n}`, role: 'user', prompt_id, origin: { kind: 'user' } }
      case 'note':
        return { type: 'message', role: 'user', content: text(`note ${n}`), origin: { kind: 'injection', variant: `v${choice % 3}` } }
      case 'answer': {
        const tool_calls = Array.from({ length: choice % 3 }, (_, at) => ({ id: `call_${n % 7}_${at}`, name: 'Read', arguments: '{}' }))
        return { type: 'step.message', ...at, content: choice % 4 === 0 ? [] : text(`answer ${n}`), tool_calls }
      }
      case 'result':
        return {
          type: 'tool.result',
          ...at,
          tool_call_id: `call_${choice % 7}_${choice % 2}`,
          tool_name: 'Read',
          content: text(`out ${n}`)
        }
      case 'settled':
        return { type: 'prompt.settled', prompt_ids: [prompt_id], status: 'completed' }
      case 'turn':
        return choice % 2 === 0
          ? { type: 'turn.started', turn_id: n, origin: { kind: 'user' }, prompt_id }
          : { type: 'turn.ended', turn_id: n - 1, reason: 'completed' }
      case 'usage': {
        const usage = { inputOther: choice, output: 1, inputCacheRead: 0, inputCacheCreation: 0 }
        return { type: 'step.end', ...at, reason: 'end_turn', model: `m${choice % 2}`, usage }
      }
      case 'other':
        return { type: 'pack.something', value: choice }
      case 'compacted':
        return {
          type: 'context.compacted',
          messages: [
            { role: 'user', content: text(`kept ${n}`) },
            { role: 'user', content: text(`sum ${n}`) }
          ]
        }
      case 'undone':
        return { type: 'context.undone', from: choice % 20, context_tokens: choice }
    }
  }

  async #naive(): Promise<Naive> {
    return new Naive(await this.#read())
  }

  async #page({ size, pivot, before }: Extract<Act, { act: 'page' }>): Promise<void> {
    const all = (await this.#naive()).messages()
    const ids = [...this.#seen.keys(), ...all.map(({ id }) => id), 'unknown']
    const id = ids[pivot % (ids.length + 1)]
    const at = all.findIndex(message => message.id === id)
    const range = at < 0 ? all : before ? all.slice(0, at) : all.slice(at + 1)
    const page = await this.world.history.messages.page({ size, ...(before ? { before: id } : { after: id }) })
    assert.deepEqual(page, { messages: range.slice(-size), has_more: range.length > size })
    const found = id === undefined ? undefined : await this.world.history.messages.find(id)
    assert.deepEqual(found, all[at])
  }

  async #compare(): Promise<void> {
    const { history, events } = this.world
    const naive = await this.#naive()
    const own = naive.records.filter(({ n }) => n !== undefined)
    assert.deepEqual(new Set(own.map(({ n }) => n)), new Set(this.#accepted))
    const all = naive.messages()
    const page = await history.messages.page({ size: 1000 })
    assert.deepEqual(page, { messages: all, has_more: false })
    assert.equal(history.messages.count(), all.length)
    assert.deepEqual(await history.project(), naive.context())
    this.#neverReused(page.messages, own)
    for (const name of ['early', `late ${this.#n}`]) assert.equal((await history.track(sum(name))).value, naive.sum())
    const { index: _i, located: _l, ...live } = saved((await history.track(conversationState)).value)
    const { index: _j, located: _m, ...computed } = saved(naive.conversation())
    assert.deepEqual(live, computed)
    assert.deepEqual(events.map(event => JSON.stringify(event)).sort(), naive.events().sort())
  }

  #neverReused(messages: readonly HistoryMessage[], records: readonly HistoryRecord[]): void {
    for (const record of records) {
      if (record.number === undefined) continue
      const id = String(record.id ?? `msg_${session_id}_${record.number}`)
      assert.equal(this.#seen.get(id) ?? record.n, record.n, `${id} was given twice`)
      this.#seen.set(id, Number(record.n))
    }
    assert.equal(new Set(messages.map(({ id }) => id)).size, messages.length)
  }
}

/** Without positions, which only the journal knows. */
function saved(conversation: Conversation) {
  const { prompts, context, ...rest } = JSON.parse(JSON.stringify(saveConversation(conversation))) as {
    prompts: { at?: number }[]
    context: { at: number; message: number }
  } & Record<string, unknown>
  return { ...rest, index: 0, located: 0, prompts: prompts.map(({ at: _, ...prompt }) => prompt), context: context.message }
}

test('whatever happens to a history, it says what its records say, and every event is told once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 40 }), async acts => {
      const log = memoryLog()
      const read = async () => log.lines.map(line => JSON.parse(line) as HistoryRecord)
      await new Play(await World.open(log), read).play(acts)
    }),
    { numRuns: Number(process.env.SVC_CODE_TEST_RUNS ?? 150) }
  )
})

test('the same holds on files', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 40 }), async acts => {
      const storage = createStorage({ home: await freshDir(), log: silent })
      const log = storage.open(wireStore, { namespace: '', dir: 'agent' })
      const read = async () => (await log.read('wire')) as HistoryRecord[]
      await new Play(await World.open(log), read).play(acts)
      await storage.close()
    }),
    { numRuns: 40 }
  )
})
