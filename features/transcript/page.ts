/** Pages of a transcript: turns with what stands behind each, read from where they are in the journal. */
import type { TurnEntry } from './index-state.ts'
import type { Item } from './shapes.ts'
import { foldRange, type Source } from './source.ts'
import { idOf, ordinalOf } from './timeline.ts'

export interface PageQuery {
  readonly before_turn?: string | undefined
  readonly after_turn?: string | undefined
  readonly page_size: number
}

/** Turns of a page take at most so many bytes of the journal, but for one turn. */
const pageBytes = 8 * 1024 * 1024

interface Page {
  readonly items: readonly Item[]
  readonly has_more: boolean
}

/** A cursor that is no turn id has no page. */
export async function pageOf(source: Source, { before_turn, after_turn, page_size }: PageQuery): Promise<Page> {
  const { entries } = source
  const cursor = before_turn ?? after_turn
  const ordinal = cursor === undefined ? undefined : ordinalOf(cursor)
  if (cursor !== undefined && ordinal === undefined) return { items: [], has_more: false }
  const first = (place: number) => (place < 0 ? entries.length : place)
  if (after_turn !== undefined && ordinal !== undefined) {
    const from = first(entries.findIndex(entry => entry.ordinal > ordinal))
    let to = from
    while (to < entries.length && to - from < page_size && (to === from || bytesOf(source, from, to + 1) <= pageBytes)) to++
    return { items: await itemsOf(source, from, to, false), has_more: to < entries.length }
  }
  const to = ordinal === undefined ? entries.length : first(entries.findIndex(entry => entry.ordinal >= ordinal))
  let from = to
  while (from > 0 && to - from < page_size && (from === to || bytesOf(source, from - 1, to) <= pageBytes)) from--
  return { items: await itemsOf(source, from, to, true), has_more: from > 0 }
}

const beginOf = ({ entries, end }: Source, place: number): number => entries[place]?.at ?? end
const bytesOf = (source: Source, from: number, to: number): number => beginOf(source, to) - beginOf(source, from)

/** The turns from one place to another (not included), and what stands behind each. `head`: with what is before the first turn of all. */
async function itemsOf(source: Source, from: number, to: number, head: boolean): Promise<Item[]> {
  const { entries, live } = source
  if (from >= to && !(head && to === 0)) return []
  const begin = from === 0 && head ? 0 : beginOf(source, from)
  const { timeline } = await foldRange(source, begin, beginOf(source, to))
  const running = live && to === entries.length ? timeline.step(live.turnId, live.stepId) : undefined
  if (live && running) running.frames.splice(0, running.frames.length, ...live.frames)
  return timeline.items
}

/** One turn alone. */
export async function turnItems(source: Source, entry: TurnEntry): Promise<Item[]> {
  const place = source.entries.indexOf(entry)
  const items = await itemsOf(source, place, place + 1, false)
  return items.filter(item => item.kind === 'turn' && idOf(item) === `t${entry.ordinal}`)
}
