/** What can be found in the journal of an agent: the prompts of the user and the answers, read forwards from where reading ended last. */
import { closeSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { headOf, jsonOf } from '../../kernel/index.ts'
import type { CoreRecord, WirePart } from '../history/index.ts'
import { documentChars, type Role } from './corpus.ts'

const chunkBytes = 1024 * 1024
/** The longest line that is read; a record is at most that long. */
const maxLineBytes = 64 * 1024 * 1024

/** How far a journal was read. */
export interface Cursor {
  /** Position behind the last whole line that was read. */
  readonly at: number
  /** The number that the next message gets when it does not say. */
  readonly next: number
  /** Which file it was. */
  readonly inode: number
  /** Prompts that are no message yet: id, text and position. */
  readonly waiting: readonly (readonly [prompt_id: string, text: string, at: number])[]
}

export type Found =
  | {
      readonly kind: 'document'
      readonly number: number
      readonly role: Role
      readonly time: number
      readonly turn?: number
      readonly step?: number
      readonly at: number
      readonly text: string
    }
  /** Messages from this number on are taken back. */
  | { readonly kind: 'undone'; readonly from: number }

export const beginning = (inode: number): Cursor => ({ at: 0, next: 0, inode, waiting: [] })

/** Records that are messages or change which there are; lines of others are not parsed. */
const wanted =
  /^\{(?:"time":[\d.]+,)?"type":"(prompt\.accepted|prompt\.settled|message|step\.message|context\.undone|context\.compacted|tool\.result)"/
const widestGap = 1_000_000

/** Reads on from a cursor, and tells what was found and the cursor behind it, after at most some megabytes each. */
export async function* readOn(file: string, from: Cursor): AsyncGenerator<{ readonly found: readonly Found[]; readonly cursor: Cursor }> {
  const handle = await open(file, 'r')
  try {
    let cursor = from
    let rest = Buffer.alloc(0)
    for (let position = from.at; ; ) {
      const chunk = Buffer.allocUnsafe(chunkBytes)
      const { bytesRead } = await handle.read(chunk, 0, chunkBytes, position)
      if (bytesRead === 0) return // what is behind the last line end is not whole
      position += bytesRead
      const data = rest.length > 0 ? Buffer.concat([rest, chunk.subarray(0, bytesRead)]) : chunk.subarray(0, bytesRead)
      const end = data.lastIndexOf(10) + 1
      rest = Buffer.from(data.subarray(end))
      if (rest.length > maxLineBytes) return
      if (end === 0) continue
      const step = read(data.subarray(0, end), cursor)
      cursor = step.cursor
      yield step
    }
  } finally {
    await handle.close()
  }
}

/** Whole lines. */
function read(lines: Buffer, { at: start, next: first, inode, waiting: before }: Cursor) {
  const found: Found[] = []
  const waiting = new Map(before.map(([id, text, at]) => [id, { text, at }]))
  let next = first
  for (let from = 0; from < lines.length; ) {
    const end = lines.indexOf(10, from)
    const line = lines.toString('utf8', from, end)
    const at = start + from
    from = end + 1
    const type = wanted.exec(line)?.[1]
    if (type === undefined) continue
    if (type === 'tool.result') {
      next++
      continue
    }
    const record = parsed(line)
    if (!record) continue
    const number = numberOf(record, next)
    if (record.type === 'prompt.accepted') waiting.set(record.prompt_id, { text: textOf(record.content), at })
    else if (record.type === 'prompt.settled') for (const id of listOf(record.prompt_ids)) waiting.delete(id)
    else if (record.type !== 'context.undone') next = number + 1
    else if (typeof record.from === 'number') found.push({ kind: 'undone', from: record.from })
    const own = ownText(record)
    if (!own) continue
    const prompt = own.prompt_id === undefined ? undefined : waiting.get(own.prompt_id)
    if (own.prompt_id !== undefined) waiting.delete(own.prompt_id)
    const text = own.text ?? prompt?.text ?? ''
    if (text.trim() === '') continue
    const place = own.text === undefined && prompt ? prompt.at : at
    const { role, turn, step } = own
    found.push({ kind: 'document', number, role, time: record.time ?? 0, turn, step, at: place, text })
  }
  return {
    found,
    cursor: { at: start + lines.length, next, inode, waiting: [...waiting].map(([id, { text, at }]) => [id, text, at] as const) }
  }
}

/** Undefined for a damaged line. The fields that are read of a record are looked at one by one. */
const parsed = (line: string) => jsonOf(line) as CoreRecord | undefined

/** As in a history: numbers rise, and records of older journals have none. */
function numberOf(record: CoreRecord, next: number): number {
  const number = 'number' in record && typeof record.number === 'number' ? record.number : next
  return number > next && number < next + widestGap ? number : next
}

interface OwnText {
  readonly role: Role
  /** Absent: that of its prompt. */
  readonly text?: string
  readonly prompt_id?: string | undefined
  readonly turn?: number | undefined
  readonly step?: number
}

/** What the user wrote, and what the model answered; no reminders, summaries and results of tools. */
function ownText(record: CoreRecord): OwnText | undefined {
  if (record.type === 'step.message') return { role: 'assistant', text: textOf(record.content), turn: record.turn_id, step: record.step }
  if (record.type !== 'message') return undefined
  const { role, content, prompt_id, turn_id: turn } = record
  if (role === 'assistant') return { role, text: textOf(content ?? []), turn }
  if (role !== 'user' || !isPrompt(record.origin)) return undefined
  return { role, ...(content ? { text: textOf(content) } : {}), prompt_id, turn }
}

function isPrompt(origin: { readonly kind: string; readonly trigger?: unknown } | undefined): boolean {
  const kind = origin?.kind ?? 'user'
  return kind === 'user' || ((kind === 'skill_activation' || kind === 'plugin_command') && origin?.trigger === 'user-slash')
}

/** Of a record that may be damaged. */
const listOf = <T>(list: readonly T[]): readonly T[] => (Array.isArray(list) ? list : [])

function textOf(content: readonly WirePart[]): string {
  const texts = listOf(content).flatMap(part => (part?.type === 'text' && typeof part.text === 'string' ? [part.text] : []))
  return headOf(texts.join('\n'), documentChars)
}

/** The text of the record at a position, again; undefined where it cannot be read. */
export function textAt(file: string, at: number): string | undefined {
  let handle: number | undefined
  try {
    handle = openSync(file, 'r')
    const parts: Buffer[] = []
    for (let position = at; position - at < maxLineBytes; ) {
      const chunk = Buffer.allocUnsafe(32 * 1024)
      const count = readSync(handle, chunk, 0, chunk.length, position)
      const end = chunk.subarray(0, count).indexOf(10)
      parts.push(chunk.subarray(0, end < 0 ? count : end))
      if (end >= 0 || count === 0) break
      position += count
    }
    const record = parsed(Buffer.concat(parts).toString('utf8'))
    return record && 'content' in record && record.content ? textOf(record.content) : undefined
  } catch {
    return undefined // the session is being deleted
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}
