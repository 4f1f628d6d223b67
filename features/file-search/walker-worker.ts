/** Worker of the walker: matches the lines of a list of files. Runs in its own thread. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { cutAround, type FileMatches, type GrepRequest, namesReturns, type Row } from './engine.ts'
import { holdFile } from './held.ts'

export interface WorkerTask {
  readonly request: GrepRequest
  readonly paths: readonly string[]
}

export type WorkerAnswer =
  | { readonly kind: 'file'; readonly matches: FileMatches; readonly scanned: number }
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'done'; readonly scanned: number }

/** Larger files are skipped. */
const MAX_BYTES = 10 * 1024 * 1024

async function work({ request, paths }: WorkerTask, answer: (message: WorkerAnswer) => void): Promise<void> {
  let pattern: RegExp
  try {
    const source = request.literal ? request.pattern.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&') : request.pattern
    pattern = new RegExp(source, `g${request.ignore_case ? 'i' : ''}${request.multiline ? 'ms' : ''}`)
  } catch (error) {
    answer({ kind: 'invalid', message: error instanceof Error ? error.message : 'not a regular expression' })
    return
  }
  let scanned = 0
  for (const path of paths) {
    const file = await holdFile(join(request.root, path))
    if (!file) continue // gone since it was listed
    const bytes = file.size > MAX_BYTES ? undefined : await readFile(file.at).catch(() => Buffer.alloc(0)) // unreadable: no match
    file.close()
    if (!bytes) continue
    const text = textOf(bytes)
    scanned++
    if (text.includes('\0')) continue
    const matches = search(text, path, pattern, request)
    if (matches) answer({ kind: 'file', matches, scanned })
  }
  answer({ kind: 'done', scanned })
}

/** UTF-8, or UTF-16 with a byte order mark. */
function textOf(bytes: Buffer): string {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined
  return wide === undefined ? bytes.toString('utf8') : new TextDecoder(wide).decode(bytes)
}

/** Matches of one text, or undefined when there are none. */
function search(text: string, path: string, pattern: RegExp, request: GrepRequest): FileMatches | undefined {
  const lines = text.split(namesReturns(request) ? '\n' : /\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  const hits = new Map<number, number>() // where the match begins, by line
  let count = 0
  if (request.multiline) {
    for (const found of text.matchAll(pattern)) {
      count++
      const before = text.slice(0, found.index)
      const first = before.split('\n').length - 1
      const length = found[0].replace(/\n$/, '').split('\n').length
      for (let line = first; line < first + length; line++)
        if (!hits.has(line)) hits.set(line, line === first ? found.index - before.lastIndexOf('\n') - 1 : 0)
    }
  } else {
    for (const [index, line] of lines.entries()) {
      if (request.most_lines !== undefined && hits.size >= request.most_lines) break
      const found = [...line.matchAll(pattern)]
      if (found[0]) hits.set(index, found[0].index)
      count += found.length
    }
  }
  if (count === 0) return undefined
  if (request.mode !== 'content') return { path, rows: [], count }
  return { path, rows: withContext(lines, hits, request) }
}

function withContext(lines: readonly string[], hits: ReadonlyMap<number, number>, request: GrepRequest): Row[] {
  const shown = new Set<number>()
  for (const hit of hits.keys()) {
    for (let line = Math.max(0, hit - request.before); line <= Math.min(lines.length - 1, hit + request.after); line++) shown.add(line)
  }
  return [...shown]
    .sort((a, b) => a - b)
    .map(line => {
      const hit = hits.get(line)
      return {
        line: line + 1,
        text: cutAround((lines[line] ?? '').replace(/\r$/, ''), hit ?? 0),
        ...(hit === undefined ? {} : { col: hit + 1 })
      }
    })
}

const port = parentPort
if (port) void work(workerData as WorkerTask, message => port.postMessage(message))
