/** What is put on record of a task that nobody can follow any more. */
import type { HistoryRecord } from '../history/index.ts'
import { endOfFile, sizeOf } from './output.ts'
import { TAIL_BYTES, type TaskEntry, terminatedRecord } from './records.ts'
import { resumeHint } from './texts.ts'

/** The end of a task that an earlier process, or another agent, has. `path`: of its output; `endedAt`: ms. */
export async function lostRecord(entry: TaskEntry, isOwn: boolean, path: string, endedAt: number): Promise<HistoryRecord> {
  const lost = (stopReason: string) => ({ ...entry.info, status: 'lost' as const, endedAt, stopReason })
  if (!isOwn) {
    const info = lost('It belongs to the conversation that this one was copied from.')
    return terminatedRecord.of({ info, tail: '', output_size: 0, saved: false, quiet: true, elsewhere: true })
  }
  const process = entry.info.kind === 'process' ? ` (process ${entry.info.pid})` : ''
  const info = lost(
    entry.left ? `The server was stopped and left it running${process}; it is not followed any more.` : 'The server ended while it ran.'
  )
  const tail = await endOfFile(path, TAIL_BYTES)
  const hint = info.kind === 'agent' && info.agentId !== undefined ? { hint: resumeHint(info.agentId) } : {}
  const output = { tail: tail ?? '', output_size: await sizeOf(path), saved: tail !== undefined }
  return terminatedRecord.of({ info, ...output, quiet: true, ...hint })
}
