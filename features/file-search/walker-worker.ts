/** Worker of the walker: matches the lines of a list of files. Runs in its own thread. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { cutAround, type FileMatches, type GrepRequest, namesReturns, type Row } from './engine.ts'
import { holdFile } from './held.ts'
import { patternOf } from './pattern.ts'

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
    pattern = patternOf(request)
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
    scanned++
    const text = textOf(bytes, request.multiline)
    const matches = search(text, path, pattern, request)
    if (matches) answer({ kind: 'file', matches, scanned })
  }
  answer({ kind: 'done', scanned })
}

/** UTF-8, or UTF-16 with a byte order mark; of what is no text, what ripgrep sees before it notices. */
function textOf(bytes: Buffer, multiline: boolean): string {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined
  if (wide === undefined) return new TextDecoder().decode(textPart(bytes, multiline))
  const text = new TextDecoder(wide).decode(bytes)
  return text.includes('\0') ? '' : text
}

/** So much is read at a time: a part with NUL in it, and what follows, is not searched. */
const PART_BYTES = 64 * 1024

function textPart(bytes: Buffer, multiline: boolean): Buffer {
  const nul = bytes.indexOf(0)
  if (nul < 0 || (multiline && nul >= PART_BYTES)) return bytes
  let from = 0
  for (let to = PART_BYTES; nul >= to; ) {
    const line = bytes.lastIndexOf(10, to - 1) + 1
    to += line > from ? line - from : to - from // a line that is longer than the part makes it larger
    from = Math.max(from, line)
  }
  return bytes.subarray(0, from)
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
      let from = 0
      // A carriage return ends a line, too, unless it is looked for: no match reaches over it.
      for (const part of namesReturns(request) ? [line] : line.split('\r')) {
        const found = [...part.matchAll(pattern)]
        if (found[0] && !hits.has(index)) hits.set(index, from + found[0].index)
        count += found.length
        from += part.length + 1
      }
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
