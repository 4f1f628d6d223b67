/**
 * The test run. Lists the sources (old outputs of renamed tests must not run), maps each to its compiled file, puts the files together into a
 * few processes of about equal work, and hands these to node:test: start and imports of a process cost more than most files.
 * A run that leaves something in the directory for temporary files fails. So does a run of all tests in which some operation or message of the
 * API documents was never seen.
 * `node test/run.mjs [--pack <name>] [--alone] [part of a file name ...]`; `--alone` gives each file a process of its own.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const groupCount = 6
const atOnce = 3

/** Seconds of CPU of files whose size says little about them, their processes included. The others take about one for 10 KB. */
const heavy = {
  'test/contract/supervisor.test.ts': 45,
  'test/client/converge.test.ts': 23,
  'test/features/cli/tarball.test.ts': 15,
  'test/features/cli/isolation/faults.test.ts': 11,
  'test/docs/pages.test.ts': 11,
  'test/features/fs/hostile.test.ts': 10,
  'test/features/cli/isolation/examples.test.ts': 9,
  'test/features/mcp/mcp.test.ts': 8,
  'test/contract/leftovers.test.ts': 7,
  'test/features/cli/pack-command.test.ts': 7,
  'test/suites/pack-hygiene.test.ts': 7,
  'test/contract/packs-off.test.ts': 6,
  'test/contract/record-and-event.test.ts': 6,
  'test/contract/page-recovery.test.ts': 6,
  'test/contract/kill-long-turn.test.ts': 6,
  'test/contract/damage.test.ts': 5,
  'test/features/cli/server-process.test.ts': 5,
  'test/client/compiled.test.ts': 5
}

const { filters, alone } = readArguments(process.argv.slice(2))
const wanted = testSources().filter(name => filters.length === 0 || filters.some(part => name.includes(part)))
if (wanted.length === 0) fail(`no test matches ${filters.join(' ')}`)
const missing = wanted.find(name => !existsSync(compiled(name)))
if (missing) fail(`${compiled(missing)} is missing: run npm run build`)

const place = temporaryPlace()
const seen = mkdtempSync(join(tmpdir(), 'svc-code-seen-'))
// Lines of the sources cost a tenth of the time of all tests: they are for looking at some.
const maps = filters.length > 0 ? ['--enable-source-maps'] : []
// Most code runs too seldom in one process to pay for its optimizing, which was a fifth of the CPU of short processes: V8 waits longer with it.
// Later versions of V8 do not know the option.
const lazy = Number.parseInt(process.versions.node, 10) < 22 ? ['--interrupt-budget=1000000'] : []
const args = [...maps, ...lazy, '--test', '--test-reporter=spec', '--test-timeout=1200000', `--test-concurrency=${atOnce}`]
// Nobody outside is called, and Node reads the certificates of a system at every start of a process: more than all else that it does.
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
const child = spawn(process.execPath, [...args, ...(alone ? wanted.map(compiled) : groupFiles(wanted))], {
  stdio: 'inherit',
  // Compilers of users keep their own code there from Node 22 on.
  env: { ...env, TMPDIR: place, TMP: place, TEMP: place, SVC_CODE_TEST_SEEN: seen, NODE_DISABLE_COMPILE_CACHE: '1' }
})
// A key press reaches the child by itself; its end is waited for, so that nothing stays.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code, signal) => {
  const left = readdirSync(place)
  rmSync(place, { recursive: true, force: true, maxRetries: 3 })
  if (left.length > 0) process.stderr.write(`left behind in the directory for temporary files: ${left.join(' ')}\n`)
  const unseen = filters.length === 0 ? unseenOf(seen) : []
  rmSync(seen, { recursive: true, force: true })
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

/** The heaviest files first, each into the group that is lightest so far; within a group each file is a suite, in the order of names. */
function groupFiles(names) {
  const weighed = names.map(name => ({ name, weight: heavy[name] ?? statSync(name).size / 10_240 }))
  weighed.sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1))
  const groups = Array.from({ length: Math.min(groupCount, names.length) }, () => ({ weight: 0, names: [] }))
  for (const { name, weight } of weighed) {
    const group = groups.reduce((least, one) => (one.weight < least.weight ? one : least))
    group.weight += weight
    group.names.push(name)
  }
  const dir = join('dist', 'test-groups')
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  return groups.map((group, index) => {
    const file = join(dir, `group-${String(index + 1).padStart(2, '0')}.test.mjs`)
    const suites = group.names.sort().map(name => {
      const url = pathToFileURL(resolve(compiled(name))).href
      return `await suite(${JSON.stringify(name)}, ${JSON.stringify(url)})`
    })
    // `group.mjs` has to be evaluated before anything that imports node:test is loaded.
    const start = `import { suite } from '../../test/group.mjs'\nawait import('../test/helpers/wire/witness.js')\n`
    writeFileSync(file, `${start}${suites.join('\n')}\n`)
    return file
  })
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
