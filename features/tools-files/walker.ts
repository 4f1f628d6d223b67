/** Search engine without ripgrep: walks directories here, matches lines in a worker thread that a bad pattern can only hang itself. */
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Ignore } from 'ignore'
import { compilePathGlob, ToolRefusal } from '../tools/index.ts'
import { type FileMatches, type ListRequest, type Partial, SEARCH_BYTES, SEARCH_MS, type SearchEngine, VCS_DIRS } from './search.ts'
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
    const endings = request.type === undefined ? undefined : types[request.type]
    if (request.type !== undefined && !endings) throw new ToolRefusal(`The file type ${request.type} is not known here. Use glob instead.`)
    const fits = request.glob === undefined ? () => true : filterOf(request.glob)
    const paths: string[] = []
    let partial: Partial | undefined
    if (request.file !== undefined) paths.push(request.file)
    else {
      partial = await walker.list(
        request,
        path => {
          if (fits(path) && (!endings || endings.includes(path.slice(path.lastIndexOf('.') + 1)))) paths.push(path)
          return paths.length < 200_000
        },
        signal
      )
    }
    return (await match({ request, paths }, onFile, signal)) ?? partial
  }
}

/** A glob as ripgrep reads it: without a slash it matches names at any depth. */
export function globOf(pattern: string): (path: string) => boolean {
  const clean = pattern.replace(/^\.?\//, '')
  const fits = compilePathGlob(clean)
  return clean.includes('/') ? fits : path => fits(path.slice(path.lastIndexOf('/') + 1))
}

/** A glob that picks files; with a leading `!` it leaves them out. */
function filterOf(pattern: string): (path: string) => boolean {
  if (!pattern.startsWith('!')) return globOf(pattern)
  const fits = globOf(pattern.slice(1))
  return path => !fits(path)
}

/** Files below the root, relative, in no particular order, and undefined for each directory; ignore files of every directory on the way count. */
async function* walk(request: ListRequest): AsyncGenerator<string | undefined> {
  const { default: ignore } = await import('ignore')
  const waiting: { readonly dir: string; readonly rules: readonly (readonly [string, Ignore])[] }[] = [{ dir: '', rules: [] }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    yield undefined
    const { dir } = next
    const entries = await readdir(join(request.root, dir), { withFileTypes: true }).catch(() => []) // unreadable: nothing to find there
    const own = request.include_ignored ? [] : entries.filter(entry => entry.isFile() && /^\.(?:git|rg)?ignore$/.test(entry.name))
    const rules = [...next.rules]
    for (const entry of own) {
      const text = await readFile(join(request.root, dir, entry.name), 'utf8').catch(() => '') // unreadable: no rules
      rules.push([dir, ignore().add(text)])
    }
    for (const entry of entries) {
      const path = dir + entry.name
      if (VCS_DIRS.includes(entry.name)) continue
      const slashed = entry.isDirectory() ? `${path}/` : path
      if (rules.some(([base, rule]) => rule.ignores(slashed.slice(base.length)))) continue
      if (entry.isDirectory()) waiting.push({ dir: slashed, rules })
      else if (entry.isFile()) yield path
    }
  }
}

/** Runs one task in a worker; the worker ends with it, at the time limit, or at the abort. */
function match(task: WorkerTask, onFile: (matches: FileMatches) => void, signal: AbortSignal): Promise<Partial | undefined> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(`./walker-worker${extname(import.meta.url)}`, import.meta.url), { workerData: task })
    let bytes = 0
    const finish = (settle: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      void worker.terminate()
      settle()
    }
    const timer = setTimeout(() => finish(() => resolve('time')), SEARCH_MS)
    const onAbort = () => finish(() => reject(signal.reason))
    signal.addEventListener('abort', onAbort, { once: true })
    worker.on('message', (answer: WorkerAnswer) => {
      if (answer.kind === 'done') finish(() => resolve(undefined))
      else if (answer.kind === 'invalid') finish(() => reject(new ToolRefusal(`The search failed: ${answer.message}`)))
      else {
        bytes += answer.matches.path.length + answer.matches.lines.reduce((sum, line) => sum + line.length + 1, 0)
        onFile(answer.matches)
        if (bytes > SEARCH_BYTES) finish(() => resolve('size'))
      }
    })
    worker.once('error', error => finish(() => reject(error)))
  })
}
