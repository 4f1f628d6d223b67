/**
 * Runs the tests: lists the sources (old outputs of renamed tests must not run), maps each to its compiled file, hands them to node:test.
 * A run that leaves something in the directory for temporary files fails.
 * `node test/run.mjs [--pack <name>] [part of a file name ...]`
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const args = process.argv.slice(2)
const filters = []
for (let at = 0; at < args.length; at++) {
  if (args[at] === '--pack') filters.push(`test/features/${args[++at] ?? ''}/`)
  else filters.push(args[at])
}

const sources = ['test', 'examples'].flatMap(dir =>
  readdirSync(dir, { recursive: true })
    .map(name => join(dir, String(name)).replaceAll('\\', '/'))
    .filter(name => name.endsWith('.test.ts'))
)
const wanted = sources.filter(name => filters.length === 0 || filters.some(part => name.includes(part))).sort()
if (wanted.length === 0) {
  process.stderr.write(`no test matches ${filters.join(' ')}\n`)
  process.exit(1)
}
const files = wanted.map(name => join('dist', name.replace(/\.ts$/, '.js')))
const missing = files.find(file => !existsSync(file))
if (missing) {
  process.stderr.write(`${missing} is missing: run npm run build\n`)
  process.exit(1)
}
const place = mkdtempSync(join(tmpdir(), 'svc-code-tests-'))
const child = spawn(
  process.execPath,
  ['--enable-source-maps', '--test', '--test-reporter=spec', '--test-timeout=120000', '--test-concurrency=2', ...files],
  { stdio: 'inherit', env: { ...process.env, TMPDIR: place, TMP: place, TEMP: place } }
)
// A key press reaches the child by itself; its end is waited for, so that nothing stays.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code, signal) => {
  const left = readdirSync(place)
  rmSync(place, { recursive: true, force: true, maxRetries: 3 })
  if (left.length > 0) process.stderr.write(`left behind in the directory for temporary files: ${left.join(' ')}\n`)
  process.exit(signal || left.length > 0 ? code || 1 : (code ?? 1))
})
