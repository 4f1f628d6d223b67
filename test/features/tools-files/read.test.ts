import assert from 'node:assert/strict'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { files } from './scene.ts'

const numbers = (count: number) => `${Array.from({ length: count }, (_, at) => `line ${at + 1}`).join('\n')}\n`

test('lines are numbered, and the note says which lines of how many', async t => {
  const { put, call } = await files(t)
  await put('a.txt', 'one\ntwo\n\nfour')
  const result = await call('Read', { path: 'a.txt' })
  assert.equal(result.output, '1\tone\n2\ttwo\n3\t\n4\tfour')
  assert.match(result.note ?? '', /Lines 1-4 of 4\./)
})

test('a window counts from the start or from the end', async t => {
  const { put, call } = await files(t)
  await put('a.txt', numbers(2_500))
  assert.equal((await call('Read', { path: 'a.txt', line_offset: 2_499, n_lines: 5 })).output, '2499\tline 2499\n2500\tline 2500')
  assert.equal((await call('Read', { path: 'a.txt', line_offset: -2, n_lines: 1 })).output, '2499\tline 2499')
  const all = await call('Read', { path: 'a.txt', n_lines: 5_000 })
  assert.equal(all.output.split('\n').length, 1_000)
  assert.match(all.note ?? '', /Stopped at 1000 lines/)
  assert.match((await call('Read', { path: 'a.txt', line_offset: 3_000 })).output, /only 2500 lines/)
  const zero = await call('Read', { path: 'a.txt', line_offset: 0 })
  assert.equal(zero.is_error, true)
  assert.match(zero.output, /line_offset: expected integer to be greater or equal to 1, or integer to be less or equal to -1$/)
})

test('long lines are cut, and an answer stops at 100 KiB', async t => {
  const { put, call } = await files(t)
  await put('wide.txt', `${'x'.repeat(5_000)}\nshort`)
  const wide = await call('Read', { path: 'wide.txt' })
  assert.match(wide.output, /^1\tx{1997}\.\.\.\n2\tshort$/)
  assert.match(wide.note ?? '', /cut at 2000 characters: 1\./)
  await put('tall.txt', `${'y'.repeat(1_000)}\n`.repeat(500))
  const tall = await call('Read', { path: 'tall.txt' })
  assert.ok(Buffer.byteLength(tall.output) <= 102_400)
  assert.match(tall.note ?? '', /Stopped at 100 KiB/)
})

test('CR LF is shown as LF, mixed line ends show their carriage returns', async t => {
  const { put, call } = await files(t)
  await put('dos.txt', 'a\r\nb\r\n')
  assert.equal((await call('Read', { path: 'dos.txt' })).output, '1\ta\n2\tb')
  await put('mixed.txt', 'a\r\nb\nc\rd')
  assert.equal((await call('Read', { path: 'mixed.txt' })).output, '1\ta\\r\n2\tb\n3\tc\\rd')
})

test('UTF-16 is transcoded and a byte order mark is not shown', async t => {
  const { put, call } = await files(t)
  await put('le.txt', Buffer.from('\ufeffh\u00e9\n', 'utf16le'))
  assert.equal((await call('Read', { path: 'le.txt' })).output, '1\th\u00e9')
  await put('bom.txt', '\ufeffhi')
  assert.equal((await call('Read', { path: 'bom.txt' })).output, '1\thi')
})

test('what is no text file is refused by name', async t => {
  const { put, call, cwd } = await files(t)
  await put('image.dat', Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2]))
  await put('utf32.txt', Buffer.from([0xff, 0xfe, 0, 0, 0x61, 0, 0, 0]))
  await put('nul.txt', `${'a'.repeat(1_000)}\0`)
  await put('latin.txt', Buffer.from([0x61, 0xe9, 0x62]))
  await mkdir(join(cwd, 'dir'))
  assert.match((await call('Read', { path: 'image.dat' })).output, /an image/)
  assert.match((await call('Read', { path: 'nul.txt' })).output, /NUL/)
  assert.match((await call('Read', { path: 'utf32.txt' })).output, /a binary file/)
  assert.match((await call('Read', { path: 'latin.txt' })).output, /not a UTF-8/)
  assert.match((await call('Read', { path: 'dir' })).output, /not a regular file/)
  assert.match((await call('Read', { path: 'gone' })).output, /does not exist/)
  await put('empty', '')
  assert.match((await call('Read', { path: 'empty' })).output, /empty/)
})

test('a relative path stays inside, also through links; an absolute one may leave; sensitive names are off limits', async t => {
  const { put, call, cwd } = await files(t)
  const elsewhere = await files(t)
  const outside = await elsewhere.put('note.txt', 'outside')
  await symlink(elsewhere.cwd, join(cwd, 'link'))
  await put('.env', 'KEY=1')
  await symlink(join(cwd, '.env'), join(cwd, 'harmless'))
  assert.match((await call('Read', { path: '../x' })).output, /leads out/)
  assert.match((await call('Read', { path: 'link/note.txt' })).output, /leads out/)
  assert.equal((await call('Read', { path: outside })).output, '1\toutside')
  assert.match((await call('Read', { path: '.env' })).output, /off limits/)
  assert.match((await call('Read', { path: 'harmless' })).output, /off limits/)
})

test('the call shows the absolute path and declares what it reads, links resolved', async t => {
  const { put, run, reports, cwd, hooks } = await files(t)
  await put('real.txt', 'x')
  await symlink(join(cwd, 'real.txt'), join(cwd, 'alias.txt'))
  const accesses: unknown[] = []
  hooks.before.tapPromise('test', async context => void accesses.push(...context.execution.accesses))
  await run([['c', 'Read', '{"path":"alias.txt"}']])
  assert.deepEqual(accesses, [{ kind: 'read', path: join(cwd, 'real.txt') }])
  const started = reports.find(report => report.type === 'started')
  assert.deepEqual(started?.type === 'started' && started.display, { kind: 'file_io', operation: 'read', path: join(cwd, 'alias.txt') })
})
