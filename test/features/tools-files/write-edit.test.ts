import assert from 'node:assert/strict'
import { chmod, lstat, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { FilesSeen } from '../../../features/tools-files/files-seen.ts'
import { memoryLog, openHistory } from '../../helpers/memory-history.ts'
import { silent } from '../tools/fakes.ts'
import { files } from './scene.ts'

test('Write creates directories, and says how many bytes it wrote', async t => {
  const { call, cwd } = await files(t)
  const result = await call('Write', { path: 'new/deep/a.txt', content: 'h\u00e9' })
  assert.match(result.output, /^Wrote 3 bytes/)
  assert.equal(await readFile(join(cwd, 'new/deep/a.txt'), 'utf8'), 'h\u00e9')
  assert.deepEqual(await readdir(join(cwd, 'new/deep')), ['a.txt'])
})

test('an existing file must have been read, and not changed since', async t => {
  const { call, put, cwd } = await files(t)
  const path = await put('a.txt', 'old')
  assert.match((await call('Write', { path: 'a.txt', content: 'new' })).output, /has not been read/)
  await call('Read', { path: 'a.txt' })
  await writeFile(path, 'other')
  await utimes(path, 1, 1)
  assert.match((await call('Edit', { path: 'a.txt', old_string: 'o', new_string: 'x' })).output, /has changed/)
  await call('Read', { path: 'a.txt' })
  assert.equal((await call('Write', { path: 'a.txt', content: 'one' })).is_error, undefined)
  assert.equal((await call('Write', { path: 'a.txt', content: 'two' })).is_error, undefined)
  assert.equal(await readFile(join(cwd, 'a.txt'), 'utf8'), 'two')
})

test('of a file that Read refuses, Write says what leads on', async t => {
  const { call, put } = await files(t)
  const path = await put('latin.txt', Buffer.from([0x61, 0xe9]))
  assert.match((await call('Read', { path: 'latin.txt' })).output, /iconv can convert it/)
  assert.match((await call('Write', { path: 'latin.txt', content: 'new' })).output, /one that Read refuses .* has to be removed/)
  await rm(path)
  assert.equal((await call('Write', { path: 'latin.txt', content: 'new' })).is_error, undefined)
})

test('a file that stands where a directory is wanted is named', async t => {
  const { call, put } = await files(t)
  await put('a.txt', 'old')

  const { output, is_error } = await call('Write', { path: 'a.txt/b/c.txt', content: 'new' })

  assert.match(output, /a\.txt is not a directory\.$/)
  assert.equal(is_error, true)
})

test('a Read earlier in the same response is enough', async t => {
  const { run, put, cwd } = await files(t)
  await put('a.txt', 'old')
  const [, write] = await run([
    ['1', 'Read', '{"path":"a.txt"}'],
    ['2', 'Write', '{"path":"a.txt","content":"new"}']
  ])
  assert.equal(write?.is_error, undefined)
  assert.equal(await readFile(join(cwd, 'a.txt'), 'utf8'), 'new')
})

test('replacing keeps the mode and follows links; appending adds to the end', async t => {
  const { call, put, cwd } = await files(t)
  const path = await put('run.sh', 'old')
  await chmod(path, 0o750)
  await symlink('run.sh', join(cwd, 'link.sh'))
  await call('Read', { path: 'link.sh' })
  await call('Write', { path: 'link.sh', content: 'new' })
  assert.equal((await stat(path)).mode & 0o777, 0o750)
  assert.ok((await lstat(join(cwd, 'link.sh'))).isSymbolicLink())
  await call('Write', { path: 'run.sh', content: '+', mode: 'append' })
  assert.equal(await readFile(path, 'utf8'), 'new+')
})

test('a link to nothing counts as what it names: nothing is made through it outside of the working directory', async t => {
  const { call, cwd } = await files(t)
  const elsewhere = `${cwd}-elsewhere`
  await symlink(elsewhere, join(cwd, 'notes'))
  await symlink('fresh', join(cwd, 'inner'))
  for (const mode of ['append', 'overwrite']) {
    assert.match((await call('Write', { path: 'notes', content: 'x', mode })).output, /leads out of the working directory/)
    assert.match((await call('Write', { path: 'notes/deep', content: 'x', mode })).output, /leads out of the working directory/)
  }
  await assert.rejects(lstat(elsewhere))
  assert.equal((await call('Write', { path: 'inner', content: 'new' })).is_error, undefined)
  assert.equal(await readFile(join(cwd, 'fresh'), 'utf8'), 'new')
  assert.ok((await lstat(join(cwd, 'inner'))).isSymbolicLink())
})

test('a changed file keeps a mode that the umask would narrow, a new one gets what the umask leaves', async t => {
  const { call, put, cwd } = await files(t)
  for (const mode of [0o666, 0o600, 0o775]) {
    const path = await put('a.txt', 'one')
    await chmod(path, mode)
    await call('Read', { path: 'a.txt' })
    await call('Edit', { path: 'a.txt', old_string: 'one', new_string: 'two' })
    assert.equal((await stat(path)).mode & 0o777, mode)
    await call('Write', { path: 'a.txt', content: 'one' })
    assert.equal((await stat(path)).mode & 0o777, mode)
  }
  await call('Write', { path: 'new.txt', content: 'x' })
  await call('Write', { path: 'added.txt', content: 'x', mode: 'append' })
  const umask = process.umask()
  for (const name of ['new.txt', 'added.txt']) assert.equal((await stat(join(cwd, name))).mode & 0o777, 0o666 & ~umask)
})

test('Edit replaces one occurrence, or all when asked', async t => {
  const { call, put, cwd } = await files(t)
  await put('a.txt', 'a $& a\n')
  await call('Read', { path: 'a.txt' })
  const edit = (old_string: string, new_string: string, more = {}) => call('Edit', { path: 'a.txt', old_string, new_string, ...more })
  assert.match((await edit('a', 'b')).output, /occurs 2 times/)
  assert.match((await edit('1\ta $&', 'b')).output, /not found in .*a\.txt\. .*without the line numbers/)
  assert.match((await edit('a', 'a')).output, /the same/)
  assert.match((await edit('a', '$&', { replace_all: true })).output, /Replaced 2 occurrences/)
  assert.equal(await readFile(join(cwd, 'a.txt'), 'utf8'), '$& $& $&\n')
  assert.match((await call('Edit', { path: 'gone', old_string: 'a', new_string: 'b' })).output, /does not exist/)
})

test('Edit makes no file that it could not change again', async t => {
  const { call, put, cwd } = await files(t)
  await put('a.txt', 'a'.repeat(50_000))
  await call('Read', { path: 'a.txt' })
  const { output } = await call('Edit', { path: 'a.txt', old_string: 'a', new_string: 'b'.repeat(300), replace_all: true })
  assert.match(output, /would be above 10 MiB/)
  assert.equal((await stat(join(cwd, 'a.txt'))).size, 50_000)
})

test('Edit works on the lines that Read shows and keeps CR LF and the byte order mark', async t => {
  const { call, put, cwd } = await files(t)
  await put('dos.txt', '\ufeffone\r\ntwo\r\n')
  await call('Read', { path: 'dos.txt' })
  await call('Edit', { path: 'dos.txt', old_string: 'one\ntwo', new_string: '1\n2' })
  assert.equal(await readFile(join(cwd, 'dos.txt'), 'utf8'), '\ufeff1\r\n2\r\n')
})

test('Write and Edit keep how a file is written down, and Write names it', async t => {
  const { call, put, cwd } = await files(t)
  const be = (text: string) => Buffer.from(text, 'utf16le').swap16()
  const kinds: readonly (readonly [string, (text: string) => Buffer, RegExp])[] = [
    ['bom.txt', text => Buffer.from(`\ufeff${text}`), /kept: byte order mark\)/],
    ['dos.txt', text => Buffer.from(text.replaceAll('\n', '\r\n')), /kept: CR LF line endings\)/],
    ['le.txt', text => Buffer.from(`\ufeff${text}`, 'utf16le'), /kept: UTF-16LE, byte order mark\)/],
    ['be.txt', text => be(`\ufeff${text.replaceAll('\n', '\r\n')}`), /kept: UTF-16BE, byte order mark, CR LF line endings\)/],
    ['plain.txt', text => Buffer.from(text), /plain\.txt$/]
  ]
  for (const [path, encode, names] of kinds) {
    await put(path, encode('one \u00e9\ntwo\n'))
    assert.match((await call('Read', { path })).output, /^1\tone \u00e9\n2\ttwo$/, path)
    const edited = await call('Edit', { path, old_string: 'one \u00e9\ntwo', new_string: '1 \u20ac\n2' })
    assert.equal(edited.is_error, undefined, edited.output)
    assert.deepEqual(await readFile(join(cwd, path)), encode('1 \u20ac\n2\n'), path)
    assert.match((await call('Write', { path, content: 'new\n\u00fc\n' })).output, names)
    assert.deepEqual(await readFile(join(cwd, path)), encode('new\n\u00fc\n'), path)
    await call('Write', { path, content: 'more\n', mode: 'append' })
    assert.deepEqual(await readFile(join(cwd, path)), encode('new\n\u00fc\nmore\n'), path)
  }
})

test('Write names line endings that change; Edit of a file with mixed ones leaves those of other lines', async t => {
  const { call, put, cwd } = await files(t)
  const read = (path: string) => readFile(join(cwd, path), 'utf8')
  const write = async (path: string, content: string, mode = 'overwrite') => (await call('Write', { path, content, mode })).output
  for (const path of ['mixed.txt', 'unix.txt', 'mac.txt']) {
    await put(path, path === 'mixed.txt' ? 'a\r\nb\nc\r\n' : path === 'unix.txt' ? 'a\nb\n' : 'a\rb\r')
    await call('Read', { path })
  }

  assert.match((await call('Edit', { path: 'mixed.txt', old_string: 'b\nc', new_string: 'B\nC' })).output, /^Replaced 1/)
  assert.equal(await read('mixed.txt'), 'a\r\nB\nC\r\n')
  assert.match(await write('mixed.txt', 'd\n', 'append'), /mixed\.txt \(kept: mixed line endings\)$/)
  assert.match(await write('mixed.txt', 'a\nb\n'), /Wrote 4 bytes to .*mixed\.txt \(line endings were mixed, are LF now\)$/)
  assert.match(await write('mixed.txt', 'a\nb\n'), /mixed\.txt$/)
  assert.match(await write('unix.txt', 'c\r\n', 'append'), /unix\.txt \(line endings were LF, are mixed now\)$/)
  assert.match(await write('mac.txt', 'one line'), /mac\.txt$/)
})

test('Write takes line endings that the text itself has, and replaces what is no text by plain UTF-8', async t => {
  const { call, put, cwd } = await files(t)
  await put('dos.txt', 'a\r\nb\r\n')
  await call('Read', { path: 'dos.txt' })
  await call('Write', { path: 'dos.txt', content: 'a\r\nb\n' })
  assert.equal(await readFile(join(cwd, 'dos.txt'), 'utf8'), 'a\r\nb\n')
  await put('latin.txt', Buffer.from([0x61, 0xe9]))
  await call('Read', { path: 'latin.txt' })
  assert.match((await call('Edit', { path: 'latin.txt', old_string: 'a', new_string: 'b' })).output, /not been read/)
})

test('what an agent has seen comes back with its history', async () => {
  const log = memoryLog()
  ;(await FilesSeen.open(await openHistory(log), silent)).record('/a', 5)
  const facts = { kind: 'file', size: 1, mtimeMs: 5, links: 1 } as const
  ;(await FilesSeen.open(await openHistory(log), silent)).check('/a', '/a', facts)
  const stranger = await FilesSeen.open(undefined, silent)
  assert.throws(() => stranger.check('/a', '/a', facts), /not been read/)
})
