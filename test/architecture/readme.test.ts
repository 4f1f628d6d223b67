/** README, CONTRIBUTING and docs against the project: generated tables, links, names of commands and packages. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../helpers/project-root.ts'

const text = (path: string) => readFileSync(new URL(path, projectRoot), 'utf8')
const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...readdirSync(new URL('docs', projectRoot)).map(name => `docs/${name}`)]
const readme = text('README.md')

test('the tables of packs and error codes show them as they are', () => {
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

test('README is short', () => {
  assert.ok(readme.split('\n').length <= 90, `${readme.split('\n').length} lines`)
})

test('every link of a page leads somewhere', () => {
  const dead = pages.flatMap(page =>
    [...text(page).matchAll(/\]\((?!https?:)([^)#]*)(#[^)]*)?\)/g)].flatMap(([, path = '', anchor]) => {
      const target = path === '' ? page : normalize(join(dirname(page), path))
      if (!existsSync(new URL(target, projectRoot))) return [`${page}: ${path}`]
      const known = anchor === undefined || headings(text(target)).includes(anchor.slice(1))
      return known ? [] : [`${page}: ${path}${anchor}`]
    })
  )
  assert.deepEqual(dead, [])
})

function headings(page: string): string[] {
  return [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-')
  )
}

test('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', projectRoot), 'utf8')) as { scripts: Record<string, string> }
  const named = pages.flatMap(page => [...text(page).matchAll(/npm run ([\w:]+)/g)].map(match => match[1] ?? ''))

  assert.deepEqual(
    named.filter(name => !(name in scripts)),
    []
  )
})

test('the page of libraries names every package that is used, and its table nothing else', () => {
  const pkg = JSON.parse(readFileSync(new URL('package.json', projectRoot), 'utf8')) as Record<string, Record<string, string>>
  const listed = { ...pkg.dependencies, ...pkg.optionalDependencies }
  const section = text('docs/libraries.md')
  const named = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(row =>
    [...(row[1] ?? '').matchAll(/`([^`]+)`/g)].map(match => match[1] ?? '')
  )

  assert.ok(named.length > 0)
  assert.deepEqual(
    named.filter(name => !(name in listed)),
    []
  )
  assert.deepEqual(
    Object.keys(listed).filter(name => !section.includes(`\`${name}\``)),
    []
  )
})
