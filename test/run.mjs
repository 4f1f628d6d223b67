/**
 * The test run. Lists the sources (old outputs of renamed tests must not run), maps each to its compiled file, and hands node:test a few processes
 * that take one file after the other, so that all end at about the same time: start and imports of a process cost more than most files.
 * A run that leaves something in the directory for temporary files fails. So does a run of all tests in which some operation or message of the
 * API documents was never seen.
 * `node test/run.mjs [--pack <name>] [--alone] [part of a file name ...]`; `--alone` gives each file a process of its own.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const atOnce = 3
/** A process that has run more files starts others more slowly, as its memory grows, and a new one takes its place. */
const filesPerProcess = 70

/** What takes longest comes first: begun at the end, it would run alone. Of the others the size of the file says enough. */
const longest = [
  'test/contract/supervisor.test.ts',
  'test/client/converge.test.ts',
  'test/features/cli/isolation/faults.test.ts',
  'test/features/cli/pack-command.test.ts',
  'test/features/cli/tarball.test.ts',
  'test/docs/pages.test.ts',
  'test/features/fs/hostile.test.ts',
  'test/contract/page-recovery.test.ts',
  'test/features/mcp/mcp.test.ts',
  'test/features/cli/isolation/examples.test.ts',
  'test/contract/record-and-event.test.ts',
  'test/contract/stopped-owner.test.ts',
  'test/contract/damage.test.ts',
  'test/contract/packs-off.test.ts',
  'test/suites/pack-hygiene.test.ts'
]

const { filters, alone } = readArguments(process.argv.slice(2))
const wanted = testSources().filter(name => filters.length === 0 || filters.some(part => name.includes(part)))
if (wanted.length === 0) fail(`no test matches ${filters.join(' ')}`)
const missing = wanted.find(name => !existsSync(compiled(name)))
if (missing) fail(`${compiled(missing)} is missing: run npm run build`)

const programs = await bundlePrograms()
const place = temporaryPlace()
const seen = mkdtempSync(join(tmpdir(), 'svc-code-seen-'))
const taken = mkdtempSync(join(tmpdir(), 'svc-code-taken-'))
// Lines of the sources cost a tenth of the time of all tests: they are for looking at some.
const maps = filters.length > 0 ? ['--enable-source-maps'] : []
// Most code runs too seldom in one process to pay for its optimizing, which was a fifth of the CPU of short processes: V8 waits longer with it.
// Later versions of V8 do not know the option.
const lazy = Number.parseInt(process.versions.node, 10) < 22 ? ['--interrupt-budget=1000000'] : []
// Servers come and go with the tests: most of what they leave is gone before it is moved.
const args = [
  ...maps,
  ...lazy,
  '--max-semi-space-size=32',
  '--test',
  '--test-reporter=spec',
  '--test-timeout=1200000',
  `--test-concurrency=${atOnce}`
]
// Nobody outside is called, and Node reads the certificates of a system at every start of a process: more than all else that it does.
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
const child = spawn(process.execPath, [...args, ...(alone ? wanted.map(compiled) : groupFiles(wanted))], {
  stdio: 'inherit',
  // Compilers of users keep their own code there from Node 22 on.
  env: {
    ...env,
    TMPDIR: place,
    TMP: place,
    TEMP: place,
    SVC_CODE_TEST_SEEN: seen,
    SVC_CODE_TEST_TAKEN: taken,
    SVC_CODE_TEST_PROGRAMS: programs,
    NODE_DISABLE_COMPILE_CACHE: '1',
    // Starting a child copies the tables of the memory that C++ has taken: a tenth with large pages (glibc; others do not know it).
    GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1'
  }
})
// A key press reaches the child by itself; its end is waited for, so that nothing stays.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code, signal) => {
  const left = readdirSync(place)
  rmSync(place, { recursive: true, force: true, maxRetries: 3 })
  if (left.length > 0) process.stderr.write(`left behind in the directory for temporary files: ${left.join(' ')}\n`)
  const unseen = filters.length === 0 ? unseenOf(seen) : []
  for (const dir of [seen, taken, programs]) rmSync(dir, { recursive: true, force: true })
  if (unseen.length > 0) process.stderr.write(`in the API documents, and in no answer or frame of this run:\n  ${unseen.join('\n  ')}\n`)
  process.exit(signal || left.length + unseen.length > 0 ? code || 1 : (code ?? 1))
})

function readArguments(words) {
  const filters = []
  let alone = false
  for (let at = 0; at < words.length; at++) {
    if (words[at] === '--pack') filters.push(`test/features/${words[++at] ?? ''}/`)
    else if (words[at] === '--alone') alone = true
    else filters.push(words[at])
  }
  return { filters, alone }
}

/**
 * The directory for temporary files: in memory where there is plenty of it and programs run from there, unless TMPDIR says where. Homes come and go
 * with nearly every test, and what is asked of the disk is the same; that a server writes in time is tested by watching its file calls and by
 * killing it, not by the medium.
 */
function temporaryPlace() {
  const prefix = 'svc-code-tests-'
  try {
    const { bsize, bavail } = statfsSync('/dev/shm')
    if (!process.env.TMPDIR && Math.min(bsize * bavail, process.availableMemory()) > 4 * 2 ** 30) {
      const dir = mkdtempSync(join('/dev/shm', prefix))
      const program = join(dir, 'runs')
      writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 })
      const { status } = spawnSync(program)
      rmSync(status === 0 ? program : dir, { recursive: true })
      if (status === 0) return dir
    }
  } catch {
    // No such place here.
  }
  return mkdtempSync(join(tmpdir(), prefix))
}

function testSources() {
  return ['test', 'examples']
    .flatMap(dir => readdirSync(dir, { recursive: true }).map(name => join(dir, String(name)).replaceAll('\\', '/')))
    .filter(name => name.endsWith('.test.ts'))
    .sort()
}

function compiled(name) {
  return join('dist', name.replace(/\.ts$/, '.js'))
}

/** More programs than are needed, all with the same files: those that come too late find none. */
function groupFiles(names) {
  const rank = name => (longest.includes(name) ? longest.length - longest.indexOf(name) : 0)
  const order = names.map(name => ({ name, rank: rank(name), size: statSync(name).size }))
  order.sort((a, b) => b.rank - a.rank || b.size - a.size || (a.name < b.name ? -1 : 1))
  const files = order.map(({ name }) => [name, pathToFileURL(resolve(compiled(name))).href])
  const dir = join('dist', 'test-groups')
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  const programs = Math.min(atOnce + Math.floor(names.length / filesPerProcess), names.length)
  return Array.from({ length: programs }, (_, index) => {
    const file = join(dir, `group-${index + 1}.test.mjs`)
    // `group.mjs` has to be evaluated before anything that imports node:test is loaded.
    const start = `import { suites } from '../../test/group.mjs'\nawait import('../test/helpers/wire/witness.js')\n`
    writeFileSync(file, `${start}await suites(${JSON.stringify(files, null, 2)}, ${filesPerProcess})\n`)
    return file
  })
}

/** The programs that tests start, each with all that it imports: that takes half as long to start as from a hundred files. */
async function bundlePrograms() {
  const dir = mkdtempSync(resolve('dist', 'test', 'bundled-')) // as far from dist/bundle as they are themselves; another run has its own
  const input = readdirSync(join('test', 'programs')).map(name => join('test', 'programs', name))
  const bundle = await rolldown({ input, platform: 'node', external: ['level'], logLevel: 'warn' })
  await bundle.write({ dir, sourcemap: true })
  await bundle.close()
  return dir
}

/** What a test demanded that no test saw (`helpers/wire/coverage.ts`). */
function unseenOf(dir) {
  const lines = readdirSync(dir).flatMap(name => readFileSync(join(dir, name), 'utf8').split('\n'))
  const saw = new Set(lines.filter(line => line.startsWith('saw ')).map(line => line.slice(4)))
  const wanted = new Set(lines.filter(line => line.startsWith('want ')).map(line => line.slice(5)))
  return [...wanted].filter(line => !saw.has(line)).sort()
}

function fail(text) {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}
