/** Copies the journal of an agent for another session, or its context for another agent. */
import { constants } from 'node:fs'
import { copyFile, open, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirs } from '../../kernel/index.ts'
import { logId, protocolVersion, type WireLog } from './contract.ts'
import type { HistoryRecord } from './define.ts'
import { type CoreRecord, told } from './records.ts'
import { endOf } from './tail.ts'
import type { Mark } from './telling.ts'
import type { HistoryMessage } from './types.ts'

/** Of marks in copies: the events of the records before were told elsewhere. */
export const copiedEpoch = ''

export interface JournalCopy {
  /** Directory of the agent, absolute, and of its copy. */
  readonly from: string
  readonly to: string
  readonly source: WireLog
  readonly target: WireLog
  /** Where the records end that are copied; undefined: all that are on disk. */
  readonly end: number | undefined
  readonly now: () => Date
}

/** Resolves when the copy is on disk, with these records at its end. An agent without a journal has none afterwards. */
export async function copyJournal({ from, to, source, target, end, now }: JournalCopy, records: readonly HistoryRecord[]): Promise<void> {
  const size = end ?? (await endOf(source))
  if (size === 0) return
  const file = join(to, `${logId}.jsonl`)
  await makeDirs(to, 0o700)
  await copyFile(join(from, `${logId}.jsonl`), file, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
  await truncate(file, size)
  const handle = await open(file, 'r+')
  await handle.datasync().finally(() => handle.close())
  try {
    const time = now().getTime()
    const places = await target.append(logId, ...records.map(record => ({ time, ...record })))
    await target.append(logId, { ...told.of({ at: records.length > 0 ? places.end : size, seq: 0, epoch: copiedEpoch }), time })
  } finally {
    await target.release(logId)
  }
}

const stillRunning = 'The call is still running: its result was not there yet when this conversation began.'

interface ContextCopy {
  readonly target: WireLog
  readonly messages: readonly HistoryMessage[]
  /** Ids of calls that had no result when the messages were asked for. */
  readonly running: readonly string[]
  /** Where the events of the session are: those of the new agent come behind it. */
  readonly given: Mark | undefined
  readonly now: Date
}

/** A new journal that begins with these messages, whose events were told elsewhere, and with these records behind them. Resolves when it is on disk. */
export async function copyContext(
  { target, messages, running, given, now }: ContextCopy,
  records: readonly HistoryRecord[]
): Promise<void> {
  const time = now.getTime()
  const metadata = { type: 'metadata', protocol_version: protocolVersion, created_at: time }
  const open = new Set(running.filter(id => !messages.some(({ tool_call_id }) => tool_call_id === id)))
  const results = messages.flatMap(({ turn_id = 0, step = 0, tool_calls = [] }) =>
    tool_calls
      .filter(({ id }) => open.has(id))
      .map(({ id, name }): CoreRecord => {
        const content = [{ type: 'text', text: stillRunning }]
        return { type: 'tool.result', turn_id, step, tool_call_id: id, tool_name: name, content, synthetic: true }
      })
  )
  try {
    const places = await target.append(
      logId,
      ...[metadata, ...messages.map(recordOf), ...results, ...records].map(record => ({ time, ...record }))
    )
    await target.append(logId, { ...told.of({ at: places.end, ...(given ?? { seq: 0, epoch: copiedEpoch }) }), time })
  } finally {
    await target.release(logId)
  }
}

/** The record of a message. It gets a number of its own, and no id: ids belong to one agent. */
function recordOf(message: HistoryMessage): CoreRecord {
  const { role, content, origin, turn_id = 0, step = 0, tool_calls = [], cut, tool_call_id, tool_name, is_error, note } = message
  if (role === 'assistant' && origin === undefined)
    return { type: 'step.message', turn_id, step, content, tool_calls: [...tool_calls], ...(cut ? { cut } : {}) }
  if (role !== 'tool') return { type: 'message', role, content, ...(origin ? { origin } : {}) }
  const call = { tool_call_id: tool_call_id ?? '', tool_name: tool_name ?? '' }
  return {
    type: 'tool.result',
    turn_id,
    step,
    ...call,
    content,
    ...(is_error ? { is_error } : {}),
    ...(note === undefined ? {} : { note })
  }
}
