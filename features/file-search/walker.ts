/** Search engine without ripgrep: walks directories here, matches lines in a worker thread that a bad pattern can only hang itself. */
import { readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ToolRefusal } from '../tools/index.ts'
import {
  assertTexts,
  type FileMatches,
  type GrepEnd,
  type ListRequest,
  type Partial,
  SEARCH_BYTES,
  SEARCH_MS,
  type SearchEngine
} from './engine.ts'
import { anyGlob, globOf, included } from './globs.ts'
import { IgnoreRules, isNamed, rulesAmong, VCS_DIRS } from './ignore-rules.ts'
import type { WorkerAnswer, WorkerTask } from './walker-worker.ts'

/** Endings of the file types that the walker knows. */
const types: Readonly<Record<string, readonly string[]>> = {
  c: ['c', 'h'],
  cpp: ['cpp', 'cc', 'cxx', 'hpp', 'hh'],
  css: ['css', 'scss'],
  go: ['go'],
  html: ['html', 'htm'],
  java: ['java'],
  js: ['js', 'jsx', 'mjs', 'cjs', 'vue'],
  json: ['json'],
  md: ['md', 'markdown'],
  py: ['py', 'pyi'],
  rust: ['rs'],
  sh: ['sh', 'bash', 'zsh'],
  ts: ['ts', 'tsx', 'mts', 'cts'],
  yaml: ['yaml', 'yml']
}

export const walker: SearchEngine = {
  async list(request, onPath, signal) {
    const until = Date.now() + SEARCH_MS
    for await (const path of walk(request)) {
      signal.throwIfAborted()
      if (Date.now() > until) return 'time'
      if (path !== undefined && !onPath(path)) return 'size'
    }
    return undefined
  },
  async grep(request, onFile, signal) {
    assertTexts(request)
    const endings = request.type === undefined ? undefined : types[request.type]
    if (request.type !== undefined && !endings) throw new ToolRefusal(`The file type ${request.type} is not known here. Use glob instead.`)
    const picked = request.glob === undefined ? () => true : filterOf(request.glob)
    const [wanted, excluded] = [included(request), anyGlob(request.exclude ?? [])]
    const fits = (path: string) => picked(path) && wanted(path) && !excluded(path)
    const until = Date.now() + (request.most_ms ?? SEARCH_MS)
    const paths: string[] = []
    let partial: Partial | undefined
    if (request.file !== undefined) paths.push(request.file)
    else {
      partial = await walker.list(
        request,
        path => {
          if (fits(path) && (!endings || endings.includes(path.slice(path.lastIndexOf('.') + 1)))) paths.push(path)
          return paths.length < 200_000 && Date.now() < until
        },
        signal
      )
    }
    if (Date.now() >= until) return { partial: 'time' }
    const end = await match({ request, paths }, onFile, signal, until - Date.now())
    return end.partial === undefined && partial !== undefined ? { ...end, partial } : end
  }
}

/** A glob that picks files; with a leading `!` it leaves them out. */
function filterOf(pattern: string): (path: string) => boolean {
  if (!pattern.startsWith('!')) return globOf(pattern)
  const fits = globOf(pattern.slice(1))
  return path => !fits(path)
}

/** Files below the root, relative, in no particular order, and undefined for each directory; ignore files of every directory on the way count. */
async function* walk({ root, include_ignored }: ListRequest): AsyncGenerator<string | undefined> {
  const above = include_ignored ? new IgnoreRules() : await IgnoreRules.above(root)
  const waiting: { readonly dir: string; readonly rules: IgnoreRules }[] = [{ dir: '', rules: above }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    yield undefined
    const { dir } = next
    const entries = await readdir(join(root, dir), { withFileTypes: true }).catch(() => []) // unreadable: nothing to find there
    const own = include_ignored ? new Set<string>() : rulesAmong(entries)
    const rules = await next.rules.in(join(root, dir), own)
    for (const entry of entries) {
      const path = dir + entry.name
      if (VCS_DIRS.includes(entry.name)) continue
      if (rules.ignores(join(root, path), entry.isDirectory())) continue
      if (entry.isDirectory()) waiting.push({ dir: `${path}/`, rules })
      else if (entry.isFile() && isNamed(root, path)) yield path
    }
  }
}

/** Runs one task in a worker; the worker ends with it, at the time limit, or at the abort. */
function match(task: WorkerTask, onFile: (matches: FileMatches) => boolean, signal: AbortSignal, ms: number): Promise<GrepEnd> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(`./walker-worker${extname(import.meta.url)}`, import.meta.url), { workerData: task })
    let bytes = 0
    let scanned = 0
    const finish = (settle: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      void worker.terminate()
      settle()
    }
    const timer = setTimeout(() => finish(() => resolve({ partial: 'time', scanned })), Math.max(0, ms))
    const onAbort = () => finish(() => reject(signal.reason))
    signal.addEventListener('abort', onAbort, { once: true })
    worker.on('message', (answer: WorkerAnswer) => {
      if (answer.kind === 'done') finish(() => resolve({ scanned: answer.scanned }))
      else if (answer.kind === 'invalid') finish(() => reject(new ToolRefusal(`The search failed: ${answer.message}`)))
      else {
        scanned = answer.scanned
        bytes += answer.matches.path.length + answer.matches.rows.reduce((sum, { text }) => sum + text.length + 1, 0)
        if (!onFile(answer.matches) || bytes > SEARCH_BYTES) finish(() => resolve({ partial: 'size', scanned }))
      }
    })
    worker.once('error', error => finish(() => reject(error)))
  })
}
