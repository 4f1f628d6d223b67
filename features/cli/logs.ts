/** `svc-code logs`: the log of a home in readable lines, and what comes to it. */
import { unwatchFile, watchFile } from 'node:fs'
import { type FileHandle, open as openFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecord, jsonOf } from '../../kernel/index.ts'
import { levels } from '../../kernel/log/log.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'

const chunkBytes = 64 * 1024
/** Fields that every line has, or that the readable form shows at its place. */
const plain = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'pack', 'name', 'err'])

export const logs: Runner = async ({ flags }, { env, out, onInterrupt }) => {
  const path = join(homeOf(flags, env), 'logs', 'svc-code.log')
  const level = flags['log-level'] ?? 'trace'
  const least = levels.values[level] ?? Number.POSITIVE_INFINITY // `silent` has no number
  const show = (line: string) => {
    const text = flags.json ? line : readable(line, least)
    if (text !== undefined) out(`${text}\n`)
  }
  const file = await openFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new CommandError(`there is no log at ${path} yet`)
    throw error
  })
  try {
    const { size } = await file.stat()
    for (const line of await lastLines(file, size, Number(flags.lines ?? 50))) show(line)
    if (flags.follow) await follow(path, file, size, show, onInterrupt)
  } finally {
    await file.close()
  }
  return 0
}

/** Reads backwards, so that a large log costs what is shown of it. */
async function lastLines(file: FileHandle, size: number, count: number): Promise<string[]> {
  const chunks: Buffer[] = []
  let ends = 0
  // The last line ends, too, and the first one of what was read may have begun before.
  for (let from = size; from > 0 && ends < count + 1; ) {
    const length = Math.min(chunkBytes, from)
    from -= length
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, from)
    chunks.unshift(buffer)
    for (let at = buffer.indexOf(10); at >= 0; at = buffer.indexOf(10, at + 1)) ends++
  }
  const lines = Buffer.concat(chunks)
    .toString('utf8')
    .split('\n')
    .filter(line => line !== '')
  return count === 0 ? [] : lines.slice(-count)
}

/** Until Ctrl+C. A log that was shortened is read from its beginning again; of one that was replaced (rotated), the rest of the old file comes first. */
async function follow(
  path: string,
  first: FileHandle,
  size: number,
  show: (line: string) => void,
  onInterrupt: (hear: () => void) => () => void
): Promise<void> {
  let file = first
  let ino = (await file.stat()).ino
  let at = size
  let rest = Buffer.alloc(0)
  const readOn = async () => {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(chunkBytes), 0, chunkBytes, at)
      if (bytesRead === 0) return
      at += bytesRead
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)])
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        show(rest.subarray(0, end).toString('utf8'))
        rest = rest.subarray(end + 1)
      }
    }
  }
  const look = async () => {
    const now = await openFile(path).catch(() => undefined) // replaced right now: the next look finds it
    if (!now) return
    const stat = await now.stat()
    if (stat.ino === ino && stat.size >= at) await now.close()
    else {
      if (stat.ino !== ino) await readOn() // what came to the one before since the last look
      if (file !== first) await file.close()
      file = now
      ino = stat.ino
      at = 0
      rest = Buffer.alloc(0)
    }
    await readOn()
  }
  let looking = Promise.resolve()
  const changed = () => {
    looking = looking.then(look)
  }
  watchFile(path, { interval: 200 }, changed)
  changed()
  await new Promise<void>(resolve => {
    const off = onInterrupt(() => {
      off()
      resolve()
    })
  })
  unwatchFile(path, changed)
  await looking
  if (file !== first) await file.close()
}

/** `13:05:01 warn  agent  a turn failed  session_id=… err="…"`; undefined for a line below `least`. */
export function readable(line: string, least = 0): string | undefined {
  const record = parsed(line)
  if (!record) return line
  const { level, time, msg, pack, err } = record
  if (typeof level === 'number' && level < least) return undefined
  const at = typeof time === 'number' || typeof time === 'string' ? new Date(time) : undefined
  const when = at === undefined || Number.isNaN(at.getTime()) ? '' : `${at.toISOString().slice(0, 10)} ${at.toTimeString().slice(0, 8)}`
  const fields = Object.entries(record).flatMap(([key, value]) => (plain.has(key) ? [] : [`${key}=${fieldText(value)}`]))
  const problem = typeof err === 'object' && err !== null ? [`err=${fieldText((err as { message?: unknown }).message ?? err)}`] : []
  const words = [
    when,
    (levels.labels[Number(level)] ?? String(level)).padEnd(5),
    typeof pack === 'string' ? `[${pack}]` : '',
    msg,
    ...fields,
    ...problem
  ]
  return words.filter(word => word !== '' && word !== undefined).join(' ')
}

function fieldText(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@-]*$/.test(value) ? value : JSON.stringify(value)
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  const value = jsonOf(line)
  return isRecord(value) ? value : undefined // not a line of ours: shown as it is
}
