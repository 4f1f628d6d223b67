/** What is known of one session, on disk: lines of documents and, behind them, how far its journals were read. The journals are the truth: what is damaged is thrown away. */
import { constants } from 'node:fs'
import { appendFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../kernel/index.ts'
import type { Role } from './corpus.ts'
import type { Cursor, Found } from './journal.ts'

const version = 1
/** A pipe in place of a snapshot is empty, and keeps nobody waiting. */
const forReading = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

export const snapshotOf = (home: string, session_id: string): string => join(home, 'search', `${session_id}.jsonl`)

export type Change = { readonly agent_id: string } & Found
export type Cursors = Readonly<Record<string, Cursor>>

type Line =
  | { readonly v: number }
  | {
      readonly d: readonly [
        agent: string,
        number: number,
        role: Role,
        time: number,
        turn: number | null,
        step: number | null,
        at: number,
        text: string
      ]
    }
  | { readonly u: readonly [agent: string, from: number] }
  | { readonly c: Cursors }

/** Changes in order, and the cursors behind them; undefined where there is nothing that can be used. */
export async function readSnapshot(file: string): Promise<{ readonly changes: readonly Change[]; readonly cursors: Cursors } | undefined> {
  try {
    const lines = (await readFile(file, { encoding: 'utf8', flag: forReading })).split('\n')
    const changes: Change[] = []
    const last = new Map<string, number>()
    let whole: { readonly count: number; readonly cursors: Cursors } | undefined
    for (const [n, text] of lines.entries()) {
      if (text === '' || (n === lines.length - 1 && !text.endsWith('}'))) break // the end, or a torn one
      const line = JSON.parse(text) as Line
      if (n === 0 && !('v' in line && line.v === version)) return undefined
      if ('d' in line) {
        const document = documentOf(line.d)
        // Two processes wrote it at a time: numbers of messages are not given again.
        if (document.number <= (last.get(document.agent_id) ?? -1)) return undefined
        last.set(document.agent_id, document.number)
        changes.push(document)
      }
      if ('u' in line) changes.push({ kind: 'undone', agent_id: line.u[0], from: line.u[1] })
      else if ('c' in line) whole = { count: changes.length, cursors: line.c }
    }
    // A line without the cursors behind it was cut: the journals tell it again, but then this file must not go on behind it.
    return whole && whole.count === changes.length ? { changes, cursors: whole.cursors } : undefined
  } catch {
    return undefined // none, or damaged
  }
}

function documentOf([agent_id, number, role, time, turn, step, at, text]: Extract<Line, { d: unknown }>['d']): {
  readonly agent_id: string
} & Extract<Found, { kind: 'document' }> {
  if (typeof agent_id !== 'string' || typeof text !== 'string' || typeof number !== 'number' || typeof time !== 'number')
    throw new Error('damaged')
  return { kind: 'document', agent_id, number, role, time, turn: turn ?? undefined, step: step ?? undefined, at, text }
}

function lineOf(change: Change): Line {
  if (change.kind === 'undone') return { u: [change.agent_id, change.from] }
  const { agent_id, number, role, time, turn = null, step = null, at, text } = change
  return { d: [agent_id, number, role, time, turn, step, at, text] }
}

const linesOf = (changes: Iterable<Change>, cursors: Cursors) =>
  [...[...changes].map(lineOf), { c: cursors }].map(line => `${JSON.stringify(line)}\n`).join('')

export async function appendSnapshot(file: string, changes: Iterable<Change>, cursors: Cursors): Promise<void> {
  await appendFile(file, linesOf(changes, cursors))
}

/** Replaces it whole. */
export async function writeSnapshot(file: string, changes: Iterable<Change>, cursors: Cursors): Promise<void> {
  await replaceFile(file, `${JSON.stringify({ v: version })}\n${linesOf(changes, cursors)}`, { sync: 'write' })
}

export async function removeSnapshot(file: string): Promise<void> {
  await rm(file, { force: true })
}
