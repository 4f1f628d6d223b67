/** README against the project: the pack table and the commands it prints. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../helpers/project-root.ts'

const readme = readFileSync(new URL('README.md', projectRoot), 'utf8')

test('the pack table shows the packs as they are', () => {
  const { status, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL('.ci/pack-table.mjs', projectRoot))], { encoding: 'utf8' })

  assert.equal(stderr, '')
  assert.equal(status, 0)
})

test('README prints the test command once, so that the pipeline runs that one', () => {
  const blocks = [...readme.matchAll(/^```\w*\n(.*?)^```/gms)].flatMap(block => (block[1] ?? '').split('\n'))

  assert.deepEqual(
    blocks.filter(line => line.includes('npm test')),
    ['npm ci && npm test']
  )
})

test('every npm script that README names exists', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', projectRoot), 'utf8')) as { scripts: Record<string, string> }
  const named = [...readme.matchAll(/npm run ([\w:]+)/g)].map(match => match[1] ?? '')

  assert.deepEqual(
    named.filter(name => !(name in scripts)),
    []
  )
})

test('the dependency table names packages that are used, and nothing else', () => {
  const pkg = JSON.parse(readFileSync(new URL('package.json', projectRoot), 'utf8')) as Record<string, Record<string, string>>
  const listed = { ...pkg.dependencies, ...pkg.optionalDependencies }
  const section = readme.slice(readme.indexOf('| Package | Why |'))
  const named = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(row =>
    [...(row[1] ?? '').matchAll(/`([^`]+)`/g)].map(match => match[1] ?? '')
  )

  assert.ok(named.length > 0)
  assert.deepEqual(
    named.filter(name => !(name in listed)),
    []
  )
})
