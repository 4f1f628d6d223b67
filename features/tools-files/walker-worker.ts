/** Worker of the walker: matches the lines of a list of files. Runs in its own thread. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { cutAround, type FileMatches, type GrepRequest } from './search.ts'

export interface WorkerTask {
  readonly request: GrepRequest
  readonly paths: readonly string[]
}

export type WorkerAnswer =
  | { readonly kind: 'file'; readonly matches: FileMatches }
  | { readonly kind: 'invalid'; readonly message: string }
  | { readonly kind: 'done' }

/** Larger files are skipped. */
const MAX_BYTES = 10 * 1024 * 1024

async function work({ request, paths }: WorkerTask, answer: (message: WorkerAnswer) => void): Promise<void> {
  let pattern: RegExp
  try {
    pattern = new RegExp(request.pattern, `g${request.ignore_case ? 'i' : ''}${request.multiline ? 'ms' : ''}`)
  } catch (error) {
    answer({ kind: 'invalid', message: error instanceof Error ? error.message : 'not a regular expression' })
    return
  }
  for (const path of paths) {
    const full = join(request.root, path)
    const facts = await stat(full).catch(() => undefined) // gone since it was listed
    if (!facts?.isFile() || facts.size > MAX_BYTES) continue
    const text = await readFile(full, 'utf8').catch(() => '') // unreadable: no match
    if (text.includes('\0')) continue
    const matches = search(text, path, pattern, request)
    if (matches) answer({ kind: 'file', matches })
  }
  answer({ kind: 'done' })
}

/** Matches of one text, or undefined when there are none. */
function search(text: string, path: string, pattern: RegExp, request: GrepRequest): FileMatches | undefined {
  const lines = text.split(/\r?\n/)
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
      const found = [...line.matchAll(pattern)]
      if (found[0]) hits.set(index, found[0].index)
      count += found.length
    }
  }
  if (count === 0) return undefined
  if (request.mode !== 'content') return { path, lines: [], count }
  return { path, lines: withContext(lines, hits, request) }
}

function withContext(lines: readonly string[], hits: ReadonlyMap<number, number>, request: GrepRequest): string[] {
  const shown = new Set<number>()
  for (const hit of hits.keys()) {
    for (let line = Math.max(0, hit - request.before); line <= Math.min(lines.length - 1, hit + request.after); line++) shown.add(line)
  }
  const out: string[] = []
  let last = -1
  for (const line of [...shown].sort((a, b) => a - b)) {
    if (last >= 0 && line > last + 1 && request.before + request.after > 0) out.push('--')
    last = line
    const shown = cutAround(lines[line] ?? '', hits.get(line) ?? 0)
    out.push(request.line_numbers ? `${line + 1}${hits.has(line) ? ':' : '-'}${shown}` : shown)
  }
  return out
}

const port = parentPort
if (port) void work(workerData as WorkerTask, message => port.postMessage(message))
