/** Files of a session: listing, reading, facts, making directories, downloads. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, lstat, mkdir, readFile, rename, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fileSearch from '../../../features/file-search/pack.ts'
import { fileScene } from './scene.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any
/** Characters of this encoding whose bytes are not their numbers. */
const windows1252: Record<string, number> = { '“': 0x93, '”': 0x94, '–': 0x96, '€': 0x80 }
const names = (items: readonly Json[]) => items.map(item => item.name as string)

test('a listing shows directories first, no hidden and no ignored files, and what each entry is', async t => {
  const { ask, put, cwd } = await fileScene(t)
  for (const path of ['b.ts', 'A.md', 'sub/x', 'sub/y.log', 'sub/.h', 'Zoo/deep/file', '.hidden', 'x.log', 'out/a', 'sub/keep/k.tmp'])
    await put(path, 'text')
  await put('.gitignore', '*.log\n/out/\n')
  await put('sub/keep/.gitignore', '*.tmp\n')
  await symlink('b.ts', join(cwd, 'link'))
  const { code, data } = await ask('list')
  for (const body of [[], [{ path: 'sub' }]]) assert.equal((await ask('list', body)).code, 40001)
  assert.equal(code, 0)
  assert.deepEqual(names(data.items), ['sub', 'Zoo', 'A.md', 'b.ts', 'link'])
  assert.equal(data.truncated, false)
  assert.equal('children_by_path' in data, false)
  const [sub, , , file, link] = data.items
  assert.deepEqual([sub.kind, sub.child_count, 'size' in sub], ['directory', 2, false])
  const stats = await lstat(join(cwd, 'b.ts'))
  assert.deepEqual([file.path, file.kind, file.size, file.modified_at], ['b.ts', 'file', 4, stats.mtime.toISOString()])
  assert.deepEqual([link.kind, link.is_symlink_to], ['symlink', 'b.ts'])
  assert.deepEqual(names((await ask('list', { show_hidden: true })).data.items), [
    'sub',
    'Zoo',
    '.gitignore',
    '.hidden',
    'A.md',
    'b.ts',
    'link'
  ])
  assert.deepEqual(names((await ask('list', { follow_gitignore: false })).data.items), [
    'out',
    'sub',
    'Zoo',
    'A.md',
    'b.ts',
    'link',
    'x.log'
  ])
  assert.deepEqual(names((await ask('list', { path: './sub/' })).data.items), ['keep', 'x'])
  assert.deepEqual((await ask('list', { path: 'sub' })).data.items[1].path, 'sub/x')
  assert.deepEqual(names((await ask('list', { path: 'sub/keep' })).data.items), [])
  assert.deepEqual(names((await ask('list', { exclude_globs: ['*.ts', 'sub', 'link'] })).data.items), ['Zoo', 'A.md'])
  const emptied = (await ask('list', { depth: 2, exclude_globs: ['sub/**'] })).data
  assert.deepEqual([names(emptied.items), names(emptied.children_by_path.sub)], [['sub', 'Zoo', 'A.md', 'b.ts', 'link'], []])
  const deep = (await ask('list', { depth: 3 })).data
  assert.deepEqual(Object.keys(deep.children_by_path).sort(), ['Zoo', 'Zoo/deep', 'sub', 'sub/keep'])
  assert.deepEqual(names(deep.children_by_path['Zoo/deep']), ['file'])
  for (const path of ['b.ts', 'nothing', 'b.ts/x']) assert.equal((await ask('list', { path })).code, 40409, path)
  for (const path of ['', '/', '..', 'sub/../sub']) assert.equal((await ask('list', { path })).code, 41304, path)
})

test('times of entries are those of the files, to the millisecond, also before 1970', async t => {
  const { ask, put, cwd } = await fileScene(t)
  const times = [-1.5, -0.001, 0, 1000, 1000.007, 1000.999, 1_763_856_633.12]
  for (const [at, time] of times.entries()) {
    await put(`f${at}`, '')
    await utimes(join(cwd, `f${at}`), time, time)
  }
  const { data } = await ask('list')
  for (const { name, modified_at } of data.items) {
    const { mtimeMs } = await lstat(join(cwd, name))
    assert.equal(modified_at, new Date(Math.round(mtimeMs)).toISOString(), name)
  }
})

test('listings sort by name, time and size; the limit cuts the directory, none below it, and says so', async t => {
  const { ask, put, cwd } = await fileScene(t)
  await put('a', '333')
  await put('b', '1')
  await put('c', '22')
  await mkdir(join(cwd, 'd'))
  for (const [at, name] of ['c', 'a', 'd', 'b'].entries()) await utimes(join(cwd, name), 1000 + at, 1000 + at)
  const sorted = async (sort: string, limit = 200) => names((await ask('list', { sort, limit })).data.items)
  assert.deepEqual(await sorted('type_first'), ['d', 'a', 'b', 'c'])
  assert.deepEqual(await sorted('name_asc'), ['a', 'b', 'c', 'd'])
  assert.deepEqual(await sorted('name_desc'), ['d', 'c', 'b', 'a'])
  assert.deepEqual(await sorted('mtime_desc'), ['b', 'd', 'a', 'c'])
  assert.deepEqual(await sorted('size_desc'), ['a', 'c', 'b', 'd'])
  assert.deepEqual(await sorted('mtime_desc', 2), ['b', 'd'])
  assert.equal((await ask('list', { limit: 3 })).data.truncated, true)
  assert.equal((await ask('list', { limit: 4 })).data.truncated, false)
  for (let n = 0; n < 3; n++) await put(`d/${n}`)
  const deep = (await ask('list', { limit: 2, depth: 2 })).data
  assert.deepEqual([names(deep.items), names(deep.children_by_path.d), deep.truncated], [['d', 'a'], ['0', '1', '2'], true])
  const many = (await ask('list_many', { paths: ['d', 'none', '../x', 'a', '.'], limit: 2 })).data
  assert.deepEqual(Object.keys(many.results), ['d', '.'])
  assert.deepEqual(many.truncated_paths, ['d', '.'])
  assert.deepEqual(
    Object.entries(many.partial_errors as Json).map(([path, { code }]: Json) => [path, code]),
    [
      ['none', 40409],
      ['../x', 41304],
      ['a', 40409]
    ]
  )
  for (const body of [{ limit: 0 }, { limit: 1001 }, { depth: 0 }, { depth: 11 }, { sort: 'x' }]) {
    const bad = await ask('list', body)
    assert.deepEqual([bad.code, bad.details[0].path], [40001, `body.${Object.keys(body)[0]}`])
  }
  assert.equal((await ask('list_many', { paths: [] })).code, 40001)
})

test('text of every encoding is read as UTF-8, bytes as base64, in parts that fit together', async t => {
  const { ask, put } = await fileScene(t)
  const read = async (path: string, more: object = {}) => await ask('read', { path, ...more })
  await put('whole', 'aé')
  const whole = (await read('whole', { length: 2 })).data
  assert.deepEqual([whole.content, whole.truncated], ['aé', false], 'the part ends in a character, which is the last')
  await put('a.ts', 'one\ntwo\n')
  const { data } = await read('a.ts')
  const { etag, ...rest } = data
  assert.match(etag, /^\w+-8-\w+$/)
  assert.deepEqual(rest, {
    path: 'a.ts',
    content: 'one\ntwo\n',
    encoding: 'utf-8',
    size: 8,
    truncated: false,
    mime: 'text/typescript',
    language_id: 'typescript',
    line_count: 2,
    is_binary: false
  })
  assert.equal((await ask('stat', { path: 'a.ts' })).data.etag, etag)

  await put('wide.txt', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('grüße 日本\n', 'utf16le')]))
  await put('wide-be.txt', Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from('grüße 日本\n', 'utf16le').swap16()]))
  await put('bare.txt', Buffer.from('no mark at all here\n', 'utf16le'))
  await put('latin.txt', Buffer.from('Größe und Länge: überall schöne Bäume, Straßen und Häuser für die müßigen Gäste\n', 'latin1'))
  await put('sjis.txt', Buffer.from('93fa967b8cea82cc834583588367838a815b837e83938341835e834383678c8e82c694fa82cc89e48381', 'hex'))
  assert.deepEqual([(await read('wide.txt')).data.content, (await read('wide-be.txt')).data.content], ['grüße 日本\n', 'grüße 日本\n'])
  assert.equal((await read('bare.txt')).data.content, 'no mark at all here\n')
  assert.match((await read('latin.txt')).data.content, /^Größe und Länge: .* müßigen Gäste\n$/)
  assert.match((await read('sjis.txt')).data.content, /^日本語の/)
  // The first byte that is not ASCII may stand behind everything that is looked at first, and be the only one.
  await put('late.c', Buffer.from(`${'int a;\n'.repeat(10_000)}/* Jos\xe9 */\n`, 'latin1'))
  assert.match((await read('late.c', { offset: 70_000 })).data.content, /^\/\* José \*\/\n$/)
  for (const [name, text] of Object.entries({ cafe: 'café', strasse: 'Straße', quotes: '“so” – 5 €' })) {
    await put(name, Buffer.from([...text].map(letter => windows1252[letter] ?? letter.charCodeAt(0))))
    assert.deepEqual(
      [(await read(name)).data.content, (await read(name)).data.is_binary, (await ask('stat', { path: name })).data.is_binary],
      [text, false, false]
    )
  }
  await put(
    'random',
    randomBytes(300).map(byte => byte || 1)
  )
  assert.equal((await read('random')).data.is_binary, true)
  const utf32 = Buffer.concat([...'\ufeffhi\n'].map(letter => Buffer.from([letter.charCodeAt(0) & 255, letter.charCodeAt(0) >> 8, 0, 0])))
  await put('utf32.txt', utf32)
  const wider = (await read('utf32.txt')).data
  assert.deepEqual([wider.is_binary, wider.content], [true, utf32.toString('base64')], 'its mark begins as that of UTF-16 does')
  const many = 'grüße 日本\n'.repeat(100_000)
  await put('long.txt', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(many, 'utf16le')]))
  const [start, end] = [
    (await read('long.txt', { length: 30 })).data,
    (await read('long.txt', { offset: 1_395_000, length: 10_000_000 })).data
  ]
  assert.deepEqual([start.truncated, end.truncated, start.size], [true, false, 1_800_002])
  assert.equal(Buffer.byteLength(many) - Buffer.byteLength(end.content), 1_395_000)
  const plain = (await read('wide.txt', { encoding: 'base64' })).data
  assert.deepEqual([plain.encoding, plain.size, plain.is_binary], ['base64', 20, false])

  await put('pic.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]))
  const pic = (await read('pic.png', { offset: 1, length: 3 })).data
  assert.deepEqual(
    [pic.content, pic.encoding, pic.is_binary, pic.truncated, pic.mime, 'line_count' in pic],
    [Buffer.from('PNG').toString('base64'), 'base64', true, true, 'image/png', false]
  )
  assert.equal((await read('pic.png', { encoding: 'utf-8' })).code, 40907)

  const text = 'aé日🙂'.repeat(5)
  await put('parts.txt', text)
  for (const length of [1, 3, 7, 50]) {
    let joined = ''
    for (let offset = 0; offset < 50; offset += length) joined += (await read('parts.txt', { offset, length })).data.content
    assert.equal(joined, text, `parts of ${length} bytes`)
  }
  const past = (await read('parts.txt', { offset: 5000 })).data
  assert.deepEqual([past.content, past.truncated, past.line_count, past.size], ['', false, 0, 50])
  await put('empty')
  assert.deepEqual([(await read('empty')).data.content, (await read('empty')).data.mime], ['', 'text/plain'])
})

test('UTF-8 with a few bytes that are none stays UTF-8, with a sign in place of each, in parts that fit together', async t => {
  const { ask, put } = await fileScene(t)
  const german = 'Die Straße führt über die Brücke. Größe, Übermut, Ärger, Öl.\n'.repeat(5)
  const chinese = '这是一个中文日志文件。\n'.repeat(20)
  const bytes = (...parts: (string | number[])[]) =>
    Buffer.concat(parts.map(part => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))
  const texts: Record<string, [Buffer, string]> = {
    stray: [bytes(german, [0xff], german), `${german}\ufffd${german}`],
    cut: [bytes(chinese, [0xe4, 0xb8], chinese), `${chinese}\ufffd${chinese}`],
    end: [bytes(german, [0xc3]), `${german}\ufffd`],
    'behind the head': [bytes('plain\n'.repeat(100_000), german, [0xf0, 0x9f], 'x'), `${'plain\n'.repeat(100_000)}${german}\ufffdx`],
    marked: [bytes('\ufeff', german, [0xff]), `\ufeff${german}\ufffd`]
  }
  for (const [path, [content, text]] of Object.entries(texts)) {
    await put(path, content)
    const { data } = await ask('read', { path })
    assert.deepEqual([data.content, data.is_binary, data.size, data.truncated], [text, false, content.length, false], path)
    assert.equal((await ask('stat', { path })).data.is_binary, false, path)
  }
  let joined = ''
  for (let offset = 0, more = true; more; offset += 7) {
    const { data } = await ask('read', { path: 'cut', offset, length: 7 })
    joined += data.content
    more = data.truncated
  }
  assert.equal(joined, texts.cut![1])
  await put('guess.txt', Buffer.from('caf\xe9, cr\xe8me, \xc3\xbc\n', 'latin1'))
  assert.equal((await ask('read', { path: 'guess.txt' })).data.content, 'café, crème, Ã¼\n', 'a pair that goes together by chance')
})

test('a file that is replaced again and again is always there, old or new, never in parts', async t => {
  const { ask, put, rest, session_id, cwd } = await fileScene(t)
  const sizes = [50_000, 60_000, 70_000]
  const replace = async (turn: number) => {
    await put('next', 'abc'[turn % 3]!.repeat(sizes[turn % 3]!))
    await rename(join(cwd, 'next'), join(cwd, 'file'))
  }
  await replace(0)
  const whole = (text: string) => text === text[0]?.repeat(sizes['abc'.indexOf(text[0])] ?? 0)
  let reading = true
  const replacing = (async () => {
    for (let turn = 1; reading; turn++) await replace(turn)
  })()
  for (let round = 0; round < 40; round++) {
    const [read, stat, listed, loaded] = await Promise.all([
      ask('read', { path: 'file' }),
      ask('stat', { path: 'file' }),
      ask('stat_many', { paths: ['file'] }),
      rest.raw('GET', `/api/v1/sessions/${session_id}/fs/file:download`)
    ])
    assert.deepEqual([read.code, stat.code, listed.data.entries.file?.kind], [0, 0, 'file'], read.msg || stat.msg)
    assert.ok(whole(read.data.content) && read.data.content.length === read.data.size)
    assert.ok(whole(loaded.body.toString()), loaded.body.toString().slice(0, 200))
  }
  reading = false
  await replacing
})

test('what cannot be read says why', async t => {
  const { ask, put, cwd } = await fileScene(t)
  await put('sub/a', 'x')
  await put('huge')
  await truncate(join(cwd, 'huge'), 1024 ** 4)
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  await symlink('/dev/zero', join(cwd, 'zero'))
  await symlink('/proc/self/environ', join(cwd, 'environ'))
  const codes = async (path: string) => (await ask('read', { path })).code
  assert.deepEqual([await codes('sub'), await codes('none'), await codes('huge'), await codes('pipe')], [40906, 40409, 41302, 40409])
  assert.deepEqual(
    [await codes('zero'), await codes('environ'), await codes('/etc/passwd'), await codes('sub/../sub/a')],
    [41304, 41304, 41304, 41304]
  )
  assert.equal((await ask('read', { path: '' })).code, 40001)
  for (const path of ['a\0b', 'half\ud800']) {
    assert.equal((await ask('read', { path })).code, 40001)
    assert.equal((await ask('mkdir', { path })).details[0].path, 'body.path')
  }
  assert.equal((await ask('read', {})).details[0].path, 'body.path')
  assert.equal((await ask('read', { path: 'sub/a', runtime_id: 'remote' })).code, 40420)
  assert.equal((await ask('zap', {})).code, 40001)
})

test('a file that does not tell its size is read to its end', async t => {
  const whole = await readFile('/proc/kallsyms').catch(() => Buffer.alloc(0))
  if (whole.length <= 65_536 || whole.length > 10_485_760) return t.skip('this system has no such file')
  const { rest } = await fileScene(t)
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: '/proc' } })).data as { id: string }
  const { data } = await rest.json('POST', `/api/v1/sessions/${id}/fs:read`, { path: 'kallsyms', length: 10 })
  const { content, size, truncated } = data as Json
  assert.deepEqual([content, truncated], [whole.toString('utf8', 0, 10), true])
  assert.ok(Math.abs(size - whole.length) < 100_000, `${size} of ${whole.length} bytes`)
})

test('a file that nobody may read has an entry all the same, and reading it is 40411', async t => {
  const cwd = ['/proc/sys/vm', '/proc/sys/net/ipv4/route'].find(dir => existsSync(join(dir, unreadable(dir))))
  if (cwd === undefined) return t.skip('this system has no file that its superuser may not read')
  const { rest } = await fileScene(t)
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd } })).data as { id: string }
  const ask = (action: string) => rest.json('POST', `/api/v1/sessions/${id}/fs:${action}`, { path: unreadable(cwd) })
  const { code, data } = await ask('stat')
  assert.deepEqual([code, (data as { kind: string }).kind], [0, 'file'])
  assert.equal((await ask('read')).code, 40411)
})

test('a file whose bytes the system does not give has an entry all the same, and reading it is 40411 with the reason', async t => {
  if (!existsSync('/proc/self/mem')) return t.skip('this system has no such file')
  const { rest } = await fileScene(t)
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: '/proc/self' } })).data as { id: string }
  const stat = await rest.json('POST', `/api/v1/sessions/${id}/fs:stat`, { path: 'mem' })
  assert.deepEqual([stat.code, (stat.data as Json).kind], [0, 'file'])
  const read = await rest.json('POST', `/api/v1/sessions/${id}/fs:read`, { path: 'mem' })
  const download = await rest.json('GET', `/api/v1/sessions/${id}/fs/mem:download`)
  for (const { code, msg } of [read, download]) assert.deepEqual([code, msg], [40411, 'mem cannot be read: EIO'])
})

const unreadable = (dir: string) => (dir.endsWith('vm') ? 'compact_memory' : 'flush')

test('stat tells one entry, stat_many many and null for what is missing; a path that leads out fails', async t => {
  const { ask, put, cwd, dir } = await fileScene(t)
  await put('a.py', 'x = 1\n')
  await symlink('nowhere', join(cwd, 'dangling'))
  await symlink(join(dir, 'nowhere'), join(cwd, 'astray'))
  await symlink('a.py', join(cwd, 'link'))
  const { data } = await ask('stat', { path: './a.py' })
  assert.deepEqual(
    [data.path, data.name, data.kind, data.size, data.mime, data.language_id, data.is_binary],
    ['a.py', 'a.py', 'file', 6, 'text/x-python', 'python', false]
  )
  assert.deepEqual((await ask('stat', { path: '.' })).data.kind, 'directory')
  assert.equal((await ask('stat', { path: '.' })).data.name, 'work')
  assert.deepEqual((await ask('stat', { path: 'link' })).data.kind, 'symlink')
  assert.deepEqual((await ask('stat', { path: 'dangling' })).data.is_symlink_to, 'nowhere')
  assert.equal((await ask('stat', { path: 'astray' })).code, 41304)
  await mkdir(`${cwd}-beside`)
  await writeFile(`${cwd}-beside/x`, 'x')
  await symlink(`${cwd}-beside`, join(cwd, 'beside'))
  for (const action of ['stat', 'read']) assert.equal((await ask(action, { path: 'beside/x' })).code, 41304, 'a name that begins like it')
  assert.equal((await ask('stat', { path: 'none' })).code, 40409)
  const many = (await ask('stat_many', { paths: ['a.py', './a.py', 'none', '__proto__'] })).data.entries
  assert.deepEqual([many['a.py'].path, many['./a.py'].path, many.none, Object.keys(many).length], ['a.py', 'a.py', null, 4])
  assert.equal((await ask('stat_many', { paths: ['a.py', '../x'] })).code, 41304)
})

/** These tests need a user whom the system refuses something. */
const isRoot = process.getuid?.() === 0

test('what nobody here may read is listed, is nothing for many, and says so when it is asked for', { skip: isRoot }, async t => {
  const { ask, put, cwd } = await fileScene(t, [fileSearch])
  await put('open.txt', 'x')
  await chmod(await put('closed', 'x'), 0)
  await put('locked/in', 'x')
  await chmod(join(cwd, 'locked'), 0)
  try {
    const many = (await ask('stat_many', { paths: ['open.txt', 'closed', 'locked', 'locked/in'] })).data.entries
    assert.deepEqual([many['open.txt'].kind, many.closed.kind, many.locked.kind, many['locked/in']], ['file', 'file', 'directory', null])
    assert.deepEqual(names((await ask('list')).data.items), ['locked', 'closed', 'open.txt'])
    const asked = { read: 'closed', list: 'locked', stat: 'locked/in', mkdir: 'locked/new' }
    for (const [action, path] of Object.entries(asked)) assert.equal((await ask(action, { path })).code, 40411, action)
    await chmod(cwd, 0)
    for (const [action, body] of Object.entries({ list: {}, search: { query: 'x' }, grep: { pattern: 'x' } }))
      assert.equal((await ask(action, body)).code, 40411, action)
  } finally {
    await chmod(cwd, 0o755)
    await chmod(join(cwd, 'locked'), 0o755)
  }
})

test('directories are made with or without their parents', async t => {
  const { ask, put, cwd, dir } = await fileScene(t)
  await put('file')
  await symlink(dir, join(cwd, 'out'))
  const made = await ask('mkdir', { path: 'a' })
  assert.deepEqual([made.data.path, made.data.kind], ['a', 'directory'])
  assert.equal((await ask('mkdir', { path: 'a' })).code, 40919)
  assert.equal((await ask('mkdir', { path: 'b/c' })).code, 40409)
  assert.equal((await ask('mkdir', { path: 'file/c' })).code, 40409)
  assert.equal((await ask('mkdir', { path: 'b/c/d', recursive: true })).data.path, 'b/c/d')
  assert.equal((await ask('mkdir', { path: 'b/c', recursive: true })).code, 0)
  assert.equal((await ask('mkdir', { path: 'file', recursive: true })).code, 40919)
  for (const path of ['out/x', 'out', '../x', '/tmp/x']) assert.equal((await ask('mkdir', { path, recursive: true })).code, 41304, path)
  await assert.rejects(lstat(join(dir, 'x')))
})

/** The name of a file as a client reads it (RFC 6266): the exact one, else the readable one. */
function nameIn(disposition: string): string {
  const exact = /filename\*=UTF-8''([^;]*)/.exec(disposition)?.[1]
  return exact === undefined ? /filename="((?:[^"\\]|\\.)*)"/.exec(disposition)![1]!.replace(/\\(.)/g, '$1') : decodeURIComponent(exact)
}

test('a download has ranges, an ETag, its name and its type', async t => {
  const { rest, put, session_id, ask, cwd, dir } = await fileScene(t)
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    rest.raw(method, `/api/v1/sessions/${session_id}/fs/${path}:download`, { headers })
  const code = async (path: string) => (JSON.parse((await get(path)).body.toString()) as { code: number }).code
  await put('sub/grüße 1.txt', '0123456789')
  await put('a:b', 'x')
  const path = 'sub/gr%C3%BC%C3%9Fe%201.txt'
  const all = await get(path)
  assert.deepEqual(
    [all.status, all.body.toString(), all.headers['content-type'], all.headers['content-length']],
    [200, '0123456789', 'text/plain', '10']
  )
  assert.match(String(all.headers['content-disposition']), /^attachment; .*filename\*=UTF-8''gr%C3%BC/)
  assert.equal(all.headers.etag, (await ask('stat', { path: 'sub/grüße 1.txt' })).data.etag)
  const part = await get(path, { range: 'bytes=2-4' })
  assert.deepEqual([part.status, part.body.toString(), part.headers['content-range']], [206, '234', 'bytes 2-4/10'])
  assert.equal((await get(path, { 'if-none-match': String(all.headers.etag) })).status, 304)
  assert.equal((await get(path, {}, 'HEAD')).headers['content-length'], '10')
  assert.equal((await get('sub%2Fgr%C3%BC%C3%9Fe%201.txt')).status, 200)
  assert.equal((await get('a:b')).body.toString(), 'x')
  for (const name of ['new\nline', 'tab\there', 'esc\x1b[0m', 'del\x7f', 'c1\x85', 'a"b\\c', 'pct%20', '\u202etxt.exe']) {
    await put(name, name)
    const named = await get(encodeURIComponent(name))
    assert.equal(named.body.toString(), name)
    assert.equal(nameIn(String(named.headers['content-disposition'])), name)
  }
  await symlink(dir, join(cwd, 'out'))
  assert.deepEqual(
    [await code('sub'), await code('none'), await code('%2E%2E/x'), await code('%2Fetc/passwd'), await code('out/x'), await code('')],
    [40906, 40409, 41304, 41304, 41304, 40001]
  )
  assert.equal(JSON.parse((await rest.raw('GET', `/api/v1/sessions/${session_id}/fs/a`, {})).body.toString()).code, 40001)
  assert.equal(JSON.parse((await rest.raw('GET', `/api/v1/sessions/session_x/fs/a:download`, {})).body.toString()).code, 40401)
})

test('an application is started with the file, and a failure is told', async t => {
  const { ask, put, cwd, dir } = await fileScene(t, [], { config: { fs: { editor_a: './editor', editor_b: '/nowhere/editor' } } })
  const file = await put('sub/a b.txt')
  const told = join(dir, 'told')
  const script = join(dir, 'code')
  await writeFile(script, `#!/bin/sh\nprintf '%s\\n' "$@" > ${told}\n`)
  await chmod(script, 0o755)
  const before = process.env.SVC_CODE_EDITOR
  process.env.SVC_CODE_EDITOR = script
  t.after(() => {
    if (before === undefined) delete process.env.SVC_CODE_EDITOR
    else process.env.SVC_CODE_EDITOR = before
  })
  assert.deepEqual((await ask('open', { path: 'sub/a b.txt', line: 3 })).data, { opened: true })
  assert.equal(await readFile(told, 'utf8'), `--goto\n${file}:3\n`)
  assert.equal((await ask('open', { path: 'sub/a b.txt', line: 0 })).code, 40001)
  assert.equal((await ask('open-in', { path: 'sub', app_id: 'editor_b' })).code, 50001)
  assert.equal((await ask('open-in', { path: 'sub', app_id: 'nonsense' })).code, 40001)
  await rm(told)
  await writeFile(join(cwd, 'sub', 'editor'), `#!/bin/sh\nprintf '%s\\n' "$@" > ${told}\n`, { mode: 0o755 })
  assert.equal((await ask('open-in', { path: 'sub', app_id: 'editor_a' })).code, 0)
  assert.equal(await readFile(told, 'utf8'), `${join(cwd, 'sub')}\n`)
  const path = process.env.PATH
  await rename(join(cwd, 'sub', 'editor'), join(dir, process.platform === 'darwin' ? 'open' : 'dbus-send'))
  process.env.PATH = `${dir}:${path}`
  assert.deepEqual((await ask('reveal', { path: 'sub/a b.txt' })).data, { revealed: true })
  process.env.PATH = path
  for (const action of ['open', 'reveal', 'open-in']) {
    const app = action === 'open-in' ? { app_id: 'finder' } : {}
    assert.equal((await ask(action, { path: 'none', ...app })).code, 40409)
    assert.equal((await ask(action, { path: '../x', ...app })).code, 41304)
    assert.equal((await ask(action, { path: 'sub', runtime_id: 'far', ...app })).code, 40420)
  }
})

test('when the working directory is gone, each of many paths says so in its place, and one path is refused', async t => {
  const { ask, cwd } = await fileScene(t)
  await rm(cwd, { recursive: true })
  const { code, data } = await ask('list_many', { paths: ['.', 'sub', '../x'], include_git_status: true })
  const codes = Object.entries(data?.partial_errors ?? {}).map(([path, error]) => [path, (error as Json).code])
  assert.deepEqual([code, codes, data?.results], [0, Object.entries({ '.': 40409, sub: 40409, '../x': 41304 }), {}])
  assert.deepEqual((await ask('stat_many', { paths: ['a', 'sub/b'] })).data, { entries: { a: null, 'sub/b': null } })
  assert.equal((await ask('stat_many', { paths: ['../x'] })).code, 41304)
  for (const action of ['list', 'stat', 'read']) assert.equal((await ask(action, { path: 'a' })).code, 40409, action)
})
