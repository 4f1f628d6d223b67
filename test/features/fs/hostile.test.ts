/** Hostile paths and names: nothing leaves the workspace, whatever is asked, and whatever is swapped while it is asked. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { link, mkdir, readFile as readWhole, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fileSearch from '../../../features/file-search/pack.ts'
import {
  downloadFromSession,
  listFiles,
  listManyFiles,
  makeDirectory,
  readFile,
  statFile,
  statManyFiles
} from '../../../features/fs/index.ts'
import { diffFile } from '../../../features/git/index.ts'
import git from '../../../features/git/pack.ts'
import type { Envelope } from '../../../kernel/index.ts'
import { fileScene } from './scene.ts'

const mark = 'MARK-OF-THE-SECRET'
const answers = new Set([0, 40001, 40409, 40411, 40906, 40907, 40908, 40919, 41302, 41304])
const defaults = { runtime_id: 'local' }
const listing = {
  ...defaults,
  depth: 2,
  limit: 50,
  show_hidden: true,
  follow_gitignore: false,
  sort: 'type_first',
  include_git_status: false
} as const

/** The same numbers in every run. */
function dice(seed: number) {
  let state = seed
  return (sides: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

const pieces = [
  '..',
  '.',
  '',
  ' ',
  '~',
  '$HOME',
  'sub',
  'file.txt',
  'deep',
  'out',
  'rel',
  'chain',
  'loop',
  'root',
  'self',
  'etc',
  'passwd',
  'secret',
  'secret.txt',
  'to-secret',
  'dangling',
  'proc',
  'environ',
  'cwd',
  'fd',
  '0',
  '3',
  '%2e%2e',
  '..%2f',
  '..;',
  '...',
  '.. ',
  ' ..',
  '..\\',
  '..\\..\\secret',
  'C:',
  'C:\\Windows',
  '\\\\host\\share',
  'a\0b',
  '\0',
  '\n',
  '\r',
  '\x1b[2J',
  '__proto__',
  'constructor',
  '-rf',
  '--help',
  '*',
  '**',
  '{a,b}',
  '[',
  '?',
  '|',
  '`id`',
  '$(id)',
  ';id',
  "'",
  '"',
  '\u202e',
  '\u2024\u2024',
  '\uff0e\uff0e',
  '\ud800',
  'é',
  'e\u0301',
  '🙂',
  'x'.repeat(255),
  'y'.repeat(256),
  'z'.repeat(5000),
  'CON',
  'NUL',
  'file.txt:stream',
  '.git',
  'HEAD',
  '.gitignore',
  'hard.txt'
]

function hostilePath(roll: (sides: number) => number): string {
  const start = ['', '', '', '', '/', './', '//', '../', 'file:///', '/proc/self/', '\\'][roll(11)]!
  const separators = ['/', '/', '/', '//', '\\', '/./', '/../'][roll(7)]!
  const parts = Array.from({ length: 1 + roll(5) }, () => pieces[roll(pieces.length)]!)
  return start + parts.join(separators)
}

test('5,000 hostile paths read, list, make and tell nothing outside of the workspace', { timeout: 60_000 }, async t => {
  const { kernel, cwd, dir, params, put } = await fileScene(t, [git])
  const secret = join(dir, 'secret')
  await mkdir(secret)
  await writeFile(join(secret, 'secret.txt'), mark)
  await writeFile(join(dir, 'secret.txt'), mark)
  await writeFile(join(secret, mark), '')
  await put('file.txt', 'fine')
  await put('sub/deep/file.txt', 'fine')
  const links = {
    out: secret,
    rel: '../secret',
    'to-secret': '../secret/secret.txt',
    root: '/',
    self: '/proc/self',
    loop: 'loop',
    chain: 'sub/hop',
    'sub/hop': '../../secret',
    'sub/root': '/',
    dangling: '../nothing',
    etc: '/etc'
  }
  for (const [name, to] of Object.entries(links)) await symlink(to, join(cwd, name))
  await link(join(cwd, 'file.txt'), join(cwd, 'hard.txt'))
  const outside = () => [readdirSync(dir).sort(), readdirSync(secret).sort()]
  const was = outside()
  const roll = dice(20_240_601)
  const asks: readonly ((path: string) => Promise<Envelope>)[] = [
    path => kernel.inject(readFile, { params, body: { ...defaults, path, offset: 0, length: 1000, encoding: 'auto' } }),
    path => kernel.inject(statFile, { params, body: { ...defaults, path } }),
    path => kernel.inject(listFiles, { params, body: { ...listing, path } }),
    path => kernel.inject(listManyFiles, { params, body: { ...listing, paths: [path, 'sub'] } }),
    path => kernel.inject(statManyFiles, { params, body: { ...defaults, paths: [path, 'sub'] } }),
    path => kernel.inject(makeDirectory, { params, body: { ...defaults, path, recursive: roll(2) === 0 } }),
    path => kernel.inject(diffFile, { params, body: { ...defaults, path } }),
    async path => {
      const answer = await kernel.inject(downloadFromSession, {
        params: { ...params, path: path.replaceAll('\ud800', '') },
        query: defaults
      })
      if (!answer.bytes || !('file' in answer.bytes)) return answer
      const file = await answer.bytes.open!()
      const text = await file.readFile('utf8')
      await file.close()
      return { ...answer, data: text as never }
    }
  ]
  const seen = new Map<number, number>()
  for (let n = 0; n < 5_000; n++) {
    const path = hostilePath(roll)
    const ask = asks[n % asks.length]!
    const answer = await ask(path)
    const told = JSON.stringify(answer.data)
    assert.ok(answers.has(answer.code) || answer.code === 40001, `${JSON.stringify(path)} answered ${answer.code} ${answer.msg}`)
    assert.ok(!told?.includes(mark) && !told?.includes('root:x:'), `${JSON.stringify(path)} told ${told}`)
    assert.ok(!answer.code || !answer.msg.includes(mark))
    seen.set(answer.code, (seen.get(answer.code) ?? 0) + 1)
  }
  assert.deepEqual(outside(), was)
  for (const code of [0, 40001, 40409, 41304]) assert.ok((seen.get(code) ?? 0) > 50, `${code} was answered`)
  assert.equal(await readWhole(join(secret, 'secret.txt'), 'utf8'), mark)
})

test('a directory that becomes a link to elsewhere while it is used shows and takes nothing there', { timeout: 60_000 }, async t => {
  const { kernel, cwd, dir, params, put } = await fileScene(t, [fileSearch])
  const secret = join(dir, 'secret')
  await mkdir(secret)
  await writeFile(join(secret, 'file.txt'), mark)
  await put('swap/file.txt', 'fine')
  const place = join(cwd, 'swap')
  const flip = (away: boolean) => {
    if (away) {
      renameSync(place, join(dir, 'kept'))
      symlinkSync(secret, place)
    } else {
      rmSync(place)
      renameSync(join(dir, 'kept'), place)
    }
  }
  const roll = dice(7)
  let ended = false
  let turns = 0
  const flipping = (async () => {
    for (let away = true; !ended || !away; away = !away) {
      flip(away)
      turns++
      for (let n = roll(40); n >= 0; n--) await new Promise(setImmediate)
    }
  })()
  let fine = 0
  for (let n = 0; n < 400; n++) {
    const told = await Promise.all([
      kernel.inject(readFile, { params, body: { ...defaults, path: 'swap/file.txt', offset: 0, length: 100, encoding: 'auto' } }),
      kernel.inject(listFiles, { params, body: { ...listing, path: '.' } }),
      kernel.inject(makeDirectory, { params, body: { ...defaults, path: `swap/new-${n}`, recursive: false } }),
      kernel.inject(downloadFromSession, { params: { ...params, path: 'swap/file.txt' }, query: defaults }).then(async answer => {
        if (!answer.bytes || !('file' in answer.bytes)) return answer.code
        const file = await answer.bytes.open!().catch(() => undefined)
        const text = await file?.readFile('utf8')
        await file?.close()
        return text
      })
    ])
    assert.ok(!JSON.stringify(told).includes(mark))
    if (told[0].code === 0) fine++
  }
  ended = true
  await flipping
  assert.ok(turns > 50 && fine > 0, `${turns} turns, ${fine} were read`)
  assert.deepEqual(readdirSync(secret), ['file.txt'])
})

test('names of every kind on disk are listed, found, read and compared as they are', async t => {
  const { ask, cwd, put } = await fileScene(t, [fileSearch, git])
  const names = [
    '-n',
    '--help',
    ' lead',
    'trail ',
    '$(touch ran)',
    '`id`',
    ';id',
    "it's",
    'a"b',
    'back\\slash',
    'new\nline',
    'tab\t',
    '*',
    '[x]',
    '{a,b}',
    '!bang',
    '#hash',
    'C:',
    '...',
    '..x',
    'é',
    'e\u0301',
    '🙂',
    '__proto__',
    'x'.repeat(255),
    ':(top)x'
  ]
  for (const name of names) await put(`odd/${name}`, `needle in ${name.slice(0, 20)}\n`)
  mkdirSync(join(cwd, '.git'))
  rmSync(join(cwd, '.git'), { recursive: true })
  const { execFileSync } = await import('node:child_process')
  const run = (...args: string[]) => execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd, stdio: 'ignore' })
  run('init', '-q')
  run('add', '-A')
  run('commit', '-qm', 'x')
  for (const name of names) await put(`odd/${name}`, 'needle changed\n')
  const sorted = [...names].sort()
  // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
  const paths = (items: any[]) => items.map(item => String(item.path).slice('odd/'.length)).sort()
  assert.deepEqual(paths((await ask('list', { path: 'odd', show_hidden: true })).data.items), sorted)
  assert.deepEqual(paths((await ask('grep', { pattern: 'needle' })).data.files), sorted)
  assert.deepEqual(
    paths((await ask('search', { query: 'odd', limit: 200 })).data.items.filter((item: { kind: string }) => item.kind === 'file')),
    sorted
  )
  assert.deepEqual(
    Object.keys((await ask('git_status')).data.entries)
      .map(path => path.slice(4))
      .sort(),
    sorted
  )
  for (const name of names) {
    const path = `odd/${name}`
    assert.equal((await ask('read', { path })).data.content, 'needle changed\n', name)
    assert.match((await ask('diff', { path })).data.diff, /^\+needle changed$/m, name)
    assert.equal((await ask('stat', { path })).data.name, name)
  }
})
