/** Edges of Read, Write and Edit: texts as Read shows them, files that are no text, limits, what cannot be written, what was seen. */
import assert from 'node:assert/strict'
import { chmod, link, mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ToolRefusal } from '../../../features/tools/index.ts'
import { type FileOps, nodeFileOps } from '../../../features/tools-files/file-ops.ts'
import { FilesSeen } from '../../../features/tools-files/files-seen.ts'
import { LineWindow } from '../../../features/tools-files/line-window.ts'
import { locate, pathRule, refusal } from '../../../features/tools-files/places.ts'
import { memoryLog, openHistory } from '../../helpers/memory-history.ts'
import { fakeAgent, silent } from '../tools/fakes.ts'
import { files } from './scene.ts'

const mib = 1024 * 1024

test('Edit takes text as Read shows it: carriage returns of mixed files', async t => {
  const { call, put, cwd } = await files(t)
  const changed = async (content: string, old_string: string, new_string: string) => {
    await put('a.txt', content)
    await call('Read', { path: 'a.txt' })
    const { output, is_error } = await call('Edit', { path: 'a.txt', old_string, new_string })
    assert.equal(is_error, undefined, output)
    return readFile(join(cwd, 'a.txt'), 'utf8')
  }
  assert.equal(await changed('a\r\nb\nc', 'a\\r\nb', 'x\\r\ny'), 'x\r\ny\nc')
  assert.equal(await changed('a\r\nb\nc\\r', 'c\\r', 'd\\r'), 'a\r\nb\nd\\r', 'what stands there as it was given is taken as it is')
  assert.equal(await changed('one\r\ntwo\r\n', 'one\r\ntwo', '1\r\n2'), '1\r\n2\r\n')
})

test('Edit refuses what is no text, no file or too large to hold', async t => {
  const { call, put, cwd } = await files(t)
  await mkdir(join(cwd, 'dir'))
  await put('large.txt', 'a'.repeat(10 * mib + 1))
  await call('Read', { path: 'large.txt', n_lines: 1 })
  const edit = async (path: string) => (await call('Edit', { path, old_string: 'a', new_string: 'b' })).output
  assert.match(await edit('dir'), /not a regular file/)
  assert.match(await edit('large.txt'), /above 10 MiB/)
  assert.match((await call('Write', { path: 'dir', content: 'x' })).output, /not a regular file/)
  // The time of the file says that it is as it was read.
  const path = await put('was.txt', 'a')
  await utimes(path, 1_000, 1_000)
  await call('Read', { path })
  await writeFile(path, Buffer.from([0x61, 0xe9]))
  await utimes(path, 1_000, 1_000)
  assert.match(await edit(path), /not a text file/)
  assert.deepEqual([...(await readFile(path))], [0x61, 0xe9])
})

test('Write takes a file above 10 MiB for plain text, and a byte order mark is written once', async t => {
  const { call, put, cwd } = await files(t)
  await put('large.txt', `${'a\r\n'.repeat(4 * mib)}`)
  await call('Read', { path: 'large.txt', n_lines: 1 })
  await call('Write', { path: 'large.txt', content: 'one\ntwo\n' })
  assert.equal(await readFile(join(cwd, 'large.txt'), 'utf8'), 'one\ntwo\n')
  await put('bom.txt', '\ufeffa')
  await call('Read', { path: 'bom.txt' })
  await call('Write', { path: 'bom.txt', content: '\ufeffb' })
  assert.equal(await readFile(join(cwd, 'bom.txt'), 'utf8'), '\ufeffb')
})

test('Read refuses UTF-16 above 10 MiB, counts a line that ends the text, and decodes what is cut in two', async t => {
  const { call, put } = await files(t)
  await put('wide.txt', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.alloc(10 * mib, 'a\0')]))
  assert.match((await call('Read', { path: 'wide.txt' })).output, /above 10 MiB/)
  await put('half.txt', Buffer.from([0x61, 0xc3]))
  assert.match((await call('Read', { path: 'half.txt' })).output, /not a UTF-8/)
  await put('parts.txt', `${'x'.repeat(256 * 1024 - 1)}é\n`)
  assert.equal((await call('Read', { path: 'parts.txt', line_offset: 1 })).is_error, undefined)
  await put('full.txt', `${'y'.repeat(1_000)}\n`.repeat(500))
  const { output } = await call('Read', { path: 'full.txt' })
  assert.ok(Buffer.byteLength(output) > 100 * 1024 - 1_010 && Buffer.byteLength(output) <= 100 * 1024)
})

test('a file that Read refused does not count as seen', async t => {
  const { call, put } = await files(t)
  await put('image.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 1]))
  await call('Read', { path: 'image.png' })
  assert.match((await call('Write', { path: 'image.png', content: 'x' })).output, /has not been read/)
})

test('a window of lines holds what it needs, wherever its text is cut', () => {
  const window = (text: string, offset: number, limit: number, size: number) => {
    const lines = new LineWindow(offset, limit)
    for (let at = 0; at < text.length; at += size) lines.push(text.slice(at, at + size))
    return { lines: lines.end(), crlf: lines.crlf, mixed: lines.mixed }
  }
  const text = `${'x'.repeat(2_000)}\r\n${'y'.repeat(2_001)}\r\nz\r\n`
  for (const size of [1, 7, 2_001, 10_000]) {
    const { lines, crlf, mixed } = window(text, 1, 1_000, size)
    assert.deepEqual(
      lines.map(line => [line.text.length, line.cut]),
      [
        [2_000, false],
        [2_000, true],
        [1, false]
      ]
    )
    assert.deepEqual([crlf, mixed], [true, false])
    assert.equal(window('a\rb\n', 1, 10, size).mixed, true)
    assert.equal(window('a\r\nb\r', 1, 10, size).mixed, true)
    assert.equal(window('a\r\r\nb', 1, 10, size).mixed, true)
    assert.deepEqual(
      window('1\n2\n3\n4', 2, 2, size).lines.map(line => line.text),
      ['2', '3']
    )
  }
  const many = Array.from({ length: 5_000 }, (_, n) => `${n}`).join('\n')
  const last = window(many, -1_000, 1_000, 4_096).lines
  assert.deepEqual([last.length, last[0]?.text, last.at(-1)?.text], [1_000, '4000', '4999'])
  assert.equal(window(many, 1, 5_000, 4_096).lines.length, 1_000)
})

test('a path below ~ is one in the home of the user; what holds no path is refused', async t => {
  const agent = await fakeAgent(t)
  const env = { agent, cwd: agent.session.cwd, turn_id: 0, tool_call_id: 'c', now: () => new Date(0) } as never
  const ports = { ops: nodeFileOps, home: '/srv/home' }
  assert.equal((await locate('~/no-such-file', env, ports)).path, join(homedir(), 'no-such-file'))
  await assert.rejects(locate('a\0b', env, ports), ToolRefusal)
  const loop: FileOps = { ...nodeFileOps, leadsTo: () => Promise.reject(Object.assign(new Error('no'), { code: 'ELOOP' })) }
  await assert.rejects(locate('a', env, { ...ports, ops: loop }), ToolRefusal)
})

test('a rule that allows must cover the file that is touched, one that forbids may name the link', () => {
  const linked = pathRule({ path: '/w/free/link', real: '/w/secret/a', cwd: '/w' }, '/w').parts[0]
  assert.deepEqual(
    ['free/**', 'secret/**'].map(pattern => [linked?.covers(pattern), linked?.names(pattern)]),
    [
      [false, true],
      [true, true]
    ]
  )
  const moved = pathRule({ path: '/link/a', real: '/w/a', cwd: '/w' }, '/link').parts[0]
  assert.equal(moved?.covers('/link/*'), true, 'a link on the way to the working directory is no detour')
})

test('what the system refuses is told to the model in words', () => {
  for (const code of ['ENOENT', 'EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ELOOP', 'ENAMETOOLONG', 'EISDIR'])
    assert.ok(refusal(Object.assign(new Error(code), { code }), '/a') instanceof ToolRefusal, code)
  const bug = new Error('bug')
  assert.equal(refusal(bug, '/a'), bug)
})

test('replacing a file gives other names of it nothing; missing directories are made', async t => {
  const { cwd, put } = await files(t)
  const path = await put('dir/a.txt', 'old')
  await link(path, join(cwd, 'other'))
  await nodeFileOps.replace(path, Buffer.from('new'))
  assert.equal(await readFile(join(cwd, 'other'), 'utf8'), 'old')
  assert.deepEqual(await readdir(join(cwd, 'dir')), ['a.txt'])
  await nodeFileOps.append(join(cwd, 'fresh/b.txt'), Buffer.from('x'))
  await nodeFileOps.replace(join(cwd, 'newer/c.txt'), Buffer.from('x'))
  assert.equal(await nodeFileOps.stat(join(path, 'below')), undefined)
  await assert.rejects(nodeFileOps.replace(join(cwd, 'dir'), Buffer.from('x')))
})

const isRoot = process.getuid?.() === 0
test('a file whose directory takes no new one is changed in place, unless it has other names', { skip: isRoot }, async t => {
  const { cwd, put } = await files(t)
  const path = await put('dir/a.txt', 'old')
  await chmod(join(cwd, 'dir'), 0o555)
  t.after(() => chmod(join(cwd, 'dir'), 0o755))
  await nodeFileOps.replace(path, Buffer.from('new'))
  assert.equal(await readFile(path, 'utf8'), 'new')
  await link(path, join(cwd, 'other'))
  await assert.rejects(nodeFileOps.replace(path, Buffer.from('newer')), { code: 'EACCES' })
})

test('an agent remembers the last 5000 files it saw, each as it saw it last', async () => {
  const log = memoryLog()
  const seen = await FilesSeen.open(await openHistory(log), silent)
  const facts = (mtimeMs: number) => ({ kind: 'file', size: 1, mtimeMs, links: 1 }) as const
  for (let n = 0; n < 5_000; n++) seen.record(`/${n}`, 1)
  seen.record('/0', 2)
  seen.record('/0', 2)
  seen.record('/new', 1)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(log.lines.filter(line => line.includes('file.seen')).length, 5_002, 'what is known is not recorded again')
  for (const one of [seen, await FilesSeen.open(await openHistory(log), silent)]) {
    one.check('/0', '/0', facts(2))
    assert.throws(() => one.check('/1', '/1', facts(1)), /has not been read/)
    assert.throws(() => one.check('/0', '/0', facts(3)), /has changed/)
    assert.throws(() => one.check('/0', '/0', facts(1)), /has changed/)
  }
})

test('a file that could not be recorded as seen harms nobody', async () => {
  const log = memoryLog()
  log.refuse = true
  const seen = await FilesSeen.open(await openHistory(log), silent)
  seen.record('/a', 1)
  await new Promise(resolve => setImmediate(resolve))
})

test('half a million lines are passed over in a moment, as a decoder hands them out', () => {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const chunk = Buffer.from('some line of a log file\n'.repeat(10_000))
  const lines = new LineWindow(-2, 10)
  const before = process.cpuUsage()

  for (let at = 0; at < 50; at++) lines.push(decoder.decode(chunk, { stream: true }))

  assert.deepEqual([lines.end().length, lines.total], [2, 500_000])
  assert.ok(process.cpuUsage(before).user < 700_000)
})
