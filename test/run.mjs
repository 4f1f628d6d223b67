/**
 * Runs the tests: lists the sources (old outputs of renamed tests must not run), maps each to its compiled file, hands them to node:test.
 * `node test/run.mjs [--pack <name>] [part of a file name ...]`
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
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
const child = spawn(
  process.execPath,
  ['--enable-source-maps', '--test', '--test-reporter=spec', '--test-timeout=120000', '--test-concurrency=2', ...files],
  { stdio: 'inherit' }
)
child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
