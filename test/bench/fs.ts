/** Files of a workspace of 100,000 files in a git repository: names, contents, listings and status, beside ripgrep and git alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { searchEngine } from '../../features/file-search/index.ts'
import { type BenchServer, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const folders = 1_000
const packages = 40
const filesPerFolder = 99
const words = [
  'user',
  'session',
  'config',
  'parser',
  'view',
  'index',
  'handler',
  'token',
  'stream',
  'cache',
  'router',
  'model',
  'queue',
  'file'
]
const queries = [
  'usrcach12',
  'handler',
  'tokenstream42',
  'router-model',
  'sesconf',
  'pkg7/view',
  'indx3.ts',
  'queue.md',
  'cachefile99',
  'strmhandl5'
]
const rare = 'a-word-that-is-nowhere-else'

export async function files(runs: number): Promise<Row[]> {
  const server = await startServer()
  try {
    await makeTree(server.workspace)
    const session = await server.session()
    const ask = async (action: string, body: object) => {
      const answer = await server.rest.json('POST', `/api/v1/sessions/${session}/fs:${action}`, body)
      if (answer.code !== 0) throw new Error(`fs:${action} answered ${answer.code} ${answer.msg}`)
      return answer.data as Record<string, unknown>
    }
    const before = await server.rss()
    const cold = await timed(() => ask('search', { query: 'user' }))
    await server.loop()
    const warm: number[] = []
    for (let run = 0; run <= runs; run++) {
      for (const query of queries) {
        const ms = await timed(() => ask('search', { query }))
        if (run > 0) warm.push(ms)
      }
    }
    const grown = (await server.rss()) - before
    const loop = await server.loop()
    const watch = new Watch(server)
    const grep = await grepRow(server, runs, () => watch.timed(() => ask('grep', { pattern: rare })))
    const list = await repeat(runs * 4, () => watch.timed(() => ask('list', { path: 'wide', limit: 1000 })))
    const status = () => watch.timed(() => ask('git_status', {}))
    const clean = await statusRow('git_status', server, runs, status, false)
    for (let n = 0; n < 50; n++) await writeFile(join(server.workspace, folderOf(n), `changed-${n}.ts`), 'changed\n')
    for (let n = 0; n < 50; n++) await writeFile(join(server.workspace, folderOf(n), nameOf(n, 0)), 'changed\n')
    const changed = await statusRow('git_status, 100 changes', server, runs, status, true)
    const diff = await diffRow(server, runs, path => watch.timed(() => ask('diff', { path })))
    const { delay } = watch
    return [
      { what: 'fs:search, first, 100,000 files', ours: cold, unit: 'ms', budget: '' },
      row('fs:search, p50 over ten queries', warm, 30),
      { what: '  memory growth (given back after a minute)', ours: grown, unit: 'MB', budget: '' },
      { what: '  loop delay during the searches', ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 },
      grep,
      row('fs:list of 1,000 entries', list, 10),
      clean,
      changed,
      diff,
      { what: '  loop delay during grep, lists, status and diffs', ours: delay, unit: 'ms', budget: '< 20', holds: delay < 20 }
    ]
  } finally {
    await server.stop()
  }
}

function row(what: string, values: readonly number[], limit: number): Row {
  const ours = median(values)
  return { what, ours, spread: spread(values), unit: 'ms', budget: `< ${limit}`, holds: ours < limit }
}

async function grepRow({ workspace }: BenchServer, runs: number, ask: () => Promise<number>): Promise<Row> {
  const { program } = await searchEngine()
  if (program === undefined) return { what: 'fs:grep of a rare word: no ripgrep here', ours: 0, unit: 'ms', budget: '' }
  const args = [
    '--no-config',
    '--hidden',
    '--no-require-git',
    '--glob',
    '!.git',
    '--fixed-strings',
    '--line-number',
    '-C',
    '2',
    '--',
    rare,
    './'
  ]
  const [ours, floor] = await alternating(runs, ask, () => timed(() => run(program, args, workspace)))
  const ratio = median(ours) / median(floor)
  return {
    what: 'fs:grep of a rare word (floor: ripgrep)',
    ours: median(ours),
    floor: median(floor),
    spread: spread(ours),
    unit: 'ms',
    budget: '<= 1.30x',
    holds: ratio <= 1.3
  }
}

/** Floor: the calls that say the same, one after the other. */
async function statusRow(
  what: string,
  { workspace }: BenchServer,
  runs: number,
  ask: () => Promise<number>,
  counts: boolean
): Promise<Row> {
  const git = async () => {
    await run('git', ['--no-optional-locks', 'status', '--porcelain=v2', '--branch'], workspace)
    if (counts) await run('git', ['--no-optional-locks', 'diff', '--numstat', 'HEAD'], workspace)
  }
  const [ours, floor] = await alternating(runs, ask, () => timed(git))
  const ratio = median(ours) / median(floor)
  return {
    what: `fs:${what} (floor: git)`,
    ours: median(ours),
    floor: median(floor),
    spread: spread(ours),
    unit: 'ms',
    budget: '<= 1.20x',
    holds: ratio <= 1.2
  }
}

/** A directory in which 2,000 files changed: git compares copies of them. */
async function diffRow({ workspace }: BenchServer, runs: number, ask: (path: string) => Promise<number>): Promise<Row> {
  for (let n = 0; n < 2_000; n++) {
    const folder = packages * (n % (folders / packages))
    await writeFile(join(workspace, folderOf(folder), nameOf(folder, Math.floor((n * packages) / folders))), `changed ${n}\n`)
  }
  const top = dirname(folderOf(0))
  const git = () => run('git', ['--no-optional-locks', 'diff', 'HEAD', '--', top], workspace)
  const [ours, floor] = await alternating(
    runs,
    () => ask(top),
    () => timed(git)
  )
  const [value, alone] = [median(ours), median(floor)]
  return {
    what: 'fs:diff of a directory with 2,000 changed files (floor: git)',
    ours: value,
    floor: alone,
    spread: spread(ours),
    unit: 'ms',
    budget: '<= 4x',
    holds: value <= alone * 4
  }
}

/** Times both in turns, so that what else the machine does shows in both. */
async function alternating(runs: number, one: () => Promise<number>, two: () => Promise<number>): Promise<readonly [number[], number[]]> {
  const [first, second]: [number[], number[]] = [[], []]
  for (let n = 0; n <= runs; n++) {
    const [a, b] = [await one(), await two()]
    if (n === 0) continue
    first.push(a)
    second.push(b)
  }
  return [first, second]
}

/** Times what the server is asked, and keeps its largest loop delay meanwhile: programs that run alone as a floor delay it, too. */
class Watch {
  delay = 0
  readonly #server: BenchServer

  constructor(server: BenchServer) {
    this.#server = server
  }

  async timed(ask: () => Promise<unknown>): Promise<number> {
    await this.#server.loop()
    const ms = await timed(ask)
    this.delay = Math.max(this.delay, await this.#server.loop())
    return ms
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.resume()
  await once(child, 'close')
}

const wordAt = (n: number) => words[n % words.length]!
const folderOf = (n: number) => join(`pkg${n % packages}`, `${wordAt(n)}-${n}`)
const nameOf = (folder: number, n: number) => `${wordAt(n + folder)}-${wordAt(n * 7 + folder * 3)}${n}.${n % 9 === 0 ? 'md' : 'ts'}`

async function makeTree(root: string): Promise<void> {
  const line = `export const value = '${'some text of a source file '.repeat(4)}'\n`
  for (let folder = 0; folder < folders; folder++) {
    const dir = join(root, folderOf(folder))
    await mkdir(dir, { recursive: true })
    await Promise.all(Array.from({ length: filesPerFolder }, (_, n) => writeFile(join(dir, nameOf(folder, n)), line.repeat(1 + (n % 12)))))
  }
  const wide = join(root, 'wide')
  await mkdir(wide)
  await Promise.all(Array.from({ length: 1_000 }, (_, n) => writeFile(join(wide, `entry-${n}.ts`), line)))
  await writeFile(join(root, folderOf(500), 'rare.ts'), `${line}// ${rare}\n${line}`)
  await writeFile(join(root, '.gitignore'), 'node_modules/\n*.log\n')
  const as = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', '-c', 'gc.auto=0']
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    ['commit', '-qm', 'all']
  ])
    await run('git', [...as, ...args], root)
}
