/** Copies the journal of an agent for another session. */
import { constants } from 'node:fs'
import { copyFile, mkdir, open, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogStore } from '../../kernel/index.ts'
import { logId } from './contract.ts'
import type { HistoryRecord } from './define.ts'
import { told } from './records.ts'

type Wire = LogStore<{ type: string; time?: number }>

/** Of marks in copies: the events of the records before were told elsewhere. */
export const copiedEpoch = ''

export interface JournalCopy {
  /** Directory of the agent, absolute, and of its copy. */
  readonly from: string
  readonly to: string
  readonly source: Wire
  readonly target: Wire
  /** Where the records end that are copied; undefined: all that are on disk. */
  readonly end: number | undefined
  readonly now: () => Date
}

/** Resolves when the copy is on disk, with these records at its end. An agent without a journal has none afterwards. */
export async function copyJournal({ from, to, source, target, end, now }: JournalCopy, records: readonly HistoryRecord[]): Promise<void> {
  const size = end ?? (await endOf(source))
  if (size === 0) return
  const file = join(to, `${logId}.jsonl`)
  await mkdir(to, { recursive: true, mode: 0o700 })
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

async function endOf(log: Wire): Promise<number> {
  for await (const { next } of log.scan(logId, { reverse: true })) return next
  return 0
}
