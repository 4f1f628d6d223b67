import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { deleteFile, type UploadObject, uploadFile } from '../../../features/files/index.ts'
import files from '../../../features/files/pack.ts'
import { startTestKernel, type TestKernel } from '../../../kernel/testing.ts'

type Part = readonly [head: string, body: string | Buffer]

const boundary = 'xXbordersXx'
const type = `multipart/form-data; boundary=${boundary}`
const field = (name: string, value: string): Part => [`form-data; name="${name}"`, value]
const file = (body: string | Buffer, name = 'a.txt', content = 'text/plain', key = 'file'): Part => [
  `form-data; name="${key}"; filename="${name}"\r\nContent-Type: ${content}`,
  body
]
const form = (...parts: readonly Part[]) =>
  Buffer.concat([
    ...parts.flatMap(([head, body]) => [
      Buffer.from(`--${boundary}\r\nContent-Disposition: ${head}\r\n\r\n`),
      Buffer.from(body),
      Buffer.from('\r\n')
    ]),
    Buffer.from(`--${boundary}--\r\n`)
  ])

async function post(kernel: TestKernel, body: Buffer, contentType = type) {
  const answer = await kernel.rest.raw('POST', '/api/v1/files', { headers: { 'content-type': contentType }, body })
  return {
    status: answer.status,
    ...(JSON.parse(answer.body.toString()) as { code: number; data: UploadObject; details?: { path: string }[] })
  }
}
const get = (kernel: TestKernel, id: string, headers: Record<string, string> = {}, method = 'GET') =>
  kernel.rest.raw(method, `/api/v1/files/${id}`, { headers })
const codeOf = (answer: { body: Buffer }) => (JSON.parse(answer.body.toString()) as { code: number }).code

/** Names of everything that lies below the uploads. */
const onDisk = async (kernel: TestKernel) =>
  (await readdir(join(kernel.home, 'files'), { recursive: true, withFileTypes: true }).catch(() => []))
    .filter(entry => entry.isFile())
    .map(entry => entry.name)

test('an upload comes back as it was, with its name, type and size', async t => {
  const kernel = await startTestKernel(t, { packs: [files], now: () => new Date(0) })
  const bytes = Buffer.from([0, 1, 2, 253, 254, 255, 13, 10])
  const { code, data } = await post(kernel, form(file(bytes, 'dir/photo one.png', 'image/png')))
  assert.equal(code, 0)
  const { id, ...facts } = data
  assert.match(id, /^f_[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.deepEqual(facts, { name: 'photo one.png', media_type: 'image/png', size: 8, created_at: '1970-01-01T00:00:00.000Z' })

  const answer = await get(kernel, id)
  assert.deepEqual([answer.status, answer.body], [200, bytes])
  const { headers } = answer
  assert.deepEqual(
    [headers['content-type'], headers['content-length'], headers['accept-ranges'], headers.etag, headers['content-disposition']],
    ['image/png', '8', 'bytes', `"${id}-8"`, 'inline; filename="photo one.png"']
  )
  const head = await get(kernel, id, {}, 'HEAD')
  assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '8', 0])
})

test('the name of the form wins; fields count before and behind the file; any file field counts, and the first one', async t => {
  const kernel = await startTestKernel(t, { packs: [files], now: () => new Date(0) })
  const named = await post(
    kernel,
    form(field('name', ' notes.md '), file('x', 'a.txt', 'text/markdown', 'upload'), field('expires_in_sec', '90.5'))
  )
  assert.deepEqual(
    [named.data.name, named.data.media_type, named.data.expires_at],
    ['notes.md', 'text/markdown', '1970-01-01T00:01:30.000Z']
  )
  const two = await post(kernel, form(file('first', '1.txt'), file('second', '2.txt'), field('other', 'is ignored')))
  assert.deepEqual([two.data.name, two.data.size], ['1.txt', 5])
  const umlaut = await post(kernel, form(file('', 'grüße.txt', 'nonsense')))
  assert.deepEqual([umlaut.data.name, umlaut.data.size, umlaut.data.media_type], ['grüße.txt', 0, 'application/octet-stream'])
  const empty = await get(kernel, umlaut.data.id)
  assert.deepEqual([empty.status, empty.body.length], [200, 0])
  assert.match(String(empty.headers['content-disposition']), /^attachment; .*filename\*=UTF-8''gr%C3%BC%C3%9Fe\.txt/)
})

test('single ranges are served, others and If-None-Match get everything', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const { id } = (await post(kernel, form(file('0123456789')))).data
  const ranged = async (range: string, more: Record<string, string> = {}) => {
    const { status, body, headers } = await get(kernel, id, { range, ...more })
    return [status, body.toString(), headers['content-range']]
  }
  assert.deepEqual(await ranged('bytes=2-4'), [206, '234', 'bytes 2-4/10'])
  assert.deepEqual(await ranged('BYTES=-3'), [206, '789', 'bytes 7-9/10'])
  assert.deepEqual(await ranged('bytes=8-99'), [206, '89', 'bytes 8-9/10'])
  for (const range of ['bytes=4-2', 'bytes=10-', 'bytes=0-1,3-4', 'items=1-2', 'bytes=x-'])
    assert.deepEqual(await ranged(range), [200, '0123456789', undefined])
  assert.deepEqual(await ranged('bytes=2-4', { 'if-range': `"${id}-10"` }), [206, '234', 'bytes 2-4/10'])
  assert.deepEqual((await ranged('bytes=2-4', { 'if-range': '"other"' }))[0], 200)
  assert.equal((await get(kernel, id, { 'if-none-match': `"${id}-10"` })).status, 200)
})

test('what is no upload answers a real 404, also after it was deleted or expired', async t => {
  let now = 0
  const kernel = await startTestKernel(t, { packs: [files], now: () => new Date(now) })
  const kept = (await post(kernel, form(file('x')))).data
  const brief = (await post(kernel, form(field('expires_in_sec', '60'), file('x')))).data
  const over = (await post(kernel, form(field('expires_in_sec', '0'), file('x')))).data
  for (const id of ['f_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'nonsense', '..%2f..%2fserver.token', 'f_', over.id]) {
    const answer = await get(kernel, id)
    assert.deepEqual([answer.status, codeOf(answer)], [404, 40407], id)
  }
  assert.equal((await get(kernel, brief.id)).status, 200)
  now = 60_000
  assert.equal((await get(kernel, brief.id)).status, 404)
  assert.deepEqual((await onDisk(kernel)).sort(), [kept.id, `${kept.id}.json`], 'what is found to have expired is removed')

  assert.deepEqual((await kernel.call(deleteFile, { params: { file_id: kept.id } })).data, { deleted: true })
  const again = await kernel.call(deleteFile, { params: { file_id: kept.id } })
  assert.deepEqual([again.status, again.code], [404, 40407])
  assert.equal((await get(kernel, kept.id)).status, 404)
  assert.deepEqual(await onDisk(kernel), [])
})

test('a form that cannot be used answers 40001 and leaves nothing', async t => {
  const kernel = await startTestKernel(t, { packs: [files], config: { files: { max_bytes: 1000 } } })
  const refused = async (body: Buffer, contentType?: string) => {
    const { status, code, details } = await post(kernel, body, contentType)
    assert.deepEqual([status, code], [200, 40001])
    return details?.[0]?.path
  }
  assert.equal(await refused(form(field('name', 'x'))), 'body.file')
  assert.equal(await refused(form(field('file', 'no file name makes it a field'))), 'body.file')
  assert.equal(await refused(Buffer.from('{}'), 'application/json'), 'body.file')
  assert.equal(await refused(form(file('x')), 'multipart/form-data'), 'body')
  assert.equal(await refused(Buffer.from(''), type), 'body')
  assert.equal(await refused(form(file('x')).subarray(0, -20)), 'body')
  for (const bad of ['-1', 'soon', 'NaN', 'Infinity', '1e300', '1e12', '0x10'])
    assert.equal(await refused(form(file('x'), field('expires_in_sec', bad))), 'body.expires_in_sec', bad)
  assert.equal(await refused(form(field('name', 'n'.repeat(300)), file('x'))), 'body.name')
  assert.equal(await refused(form(field('name', 'n'.repeat(5000)), file('x'))), 'body.name')
  assert.equal(await refused(form(file('x'.repeat(1001)))), 'body.file')
  assert.equal(await refused(form(file('x'.repeat(2_000_000)))), 'body.file')
  assert.equal((await post(kernel, form(file('x'.repeat(1000))))).code, 0)
  assert.equal((await onDisk(kernel)).length, 2)
})

test('of a form with very many fields the file and its name count, wherever they stand; one with more than can be looked at says so', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const many = (count: number) => Array.from({ length: count }, (_, at) => field(`more-${at}`, 'x'))

  const { data } = await post(kernel, form(...many(499), file('bytes'), ...many(499), field('name', 'late.txt')))
  assert.deepEqual([data.name, data.size], ['late.txt', 5])
  const { code, details } = await post(kernel, form(...many(3000), file('bytes')))

  assert.deepEqual([code, details], [40001, [{ path: 'body', message: 'has more than 1000 parts' }]])
  assert.equal((await onDisk(kernel)).length, 2, 'the first one and its facts')
})

test('an upload whose client goes away leaves nothing', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const stream = new Readable({ read() {} })
  const headers = { 'content-type': type }
  const body = { file: 'comes in the stream' }
  const sent = kernel.kernel.inject(uploadFile, { body, headers, stream }).catch(() => 'gone')
  stream.push(form(file('x'.repeat(100_000))).subarray(0, 90_000))
  stream.destroy()
  await sent
  const over = new Readable({ read() {} })
  over.destroy()
  await once(over, 'close')
  const late = await kernel.kernel.inject(uploadFile, { body, headers, stream: over })
  assert.deepEqual([late.code, late.data], [40001, null])
  assert.deepEqual(await onDisk(kernel), [])

  const socket = connect({ port: Number(new URL(kernel.url).port), host: '127.0.0.1' })
  const head = `POST /api/v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${kernel.token}\r\nContent-Type: ${type}\r\nContent-Length: 1000000\r\n\r\n`
  await new Promise<void>(resolve =>
    socket.write(Buffer.concat([Buffer.from(head), form(file('y'.repeat(200_000))).subarray(0, 150_000)]), () => resolve())
  )
  while ((await onDisk(kernel)).length === 0) await new Promise(resolve => setTimeout(resolve, 2))
  socket.destroy()
  while ((await onDisk(kernel)).length > 0) await new Promise(resolve => setTimeout(resolve, 2))
})

test('failures of the disk answer HTTP 500', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const { id } = (await post(kernel, form(file('x')))).data
  const place = join(kernel.home, 'files/bytes', id)
  await rm(place)
  assert.equal((await get(kernel, id)).status, 404)
  await mkdir(place)
  const directory = await get(kernel, id)
  assert.deepEqual([directory.status, codeOf(directory)], [500, 50003])
  await rm(place, { recursive: true })
  await symlink(place, place)
  assert.equal((await get(kernel, id)).status, 500)
  await rm(join(kernel.home, 'files'), { recursive: true })
  await writeFile(join(kernel.home, 'files'), '')
  const refused = await post(kernel, form(file('x')))
  assert.deepEqual([refused.status, refused.code], [500, 50003])
})

test('an upload whose facts are damaged answers HTTP 500, stays as it is, and can be deleted', async t => {
  const kernel = await startTestKernel(t, { packs: [files], config: { files: { sweep_ms: 10 } } })
  const { id } = (await post(kernel, form(file('kept')))).data
  const { id: brief } = (await post(kernel, form(file('kept'), field('expires_in_sec', '7200')))).data
  const places = [`files/facts/${id}.json`, `files/facts/expiring/${brief}.json`].map(place => join(kernel.home, place))
  for (const damage of ['{"id":', '{}', '']) {
    for (const place of places) await writeFile(place, damage)
    for (const each of [id, brief, id]) {
      const answer = await get(kernel, each)
      assert.deepEqual([answer.status, codeOf(answer)], [500, 50003], `${each} with ${damage}`)
    }
  }
  const { id: over } = (await post(kernel, form(file('gone'), field('expires_in_sec', '0')))).data
  while ((await onDisk(kernel)).includes(over)) await new Promise(resolve => setTimeout(resolve, 2))
  assert.deepEqual((await onDisk(kernel)).sort(), [id, `${id}.json`, brief, `${brief}.json`].sort(), 'a sweep passes them over')
  for (const each of [id, brief]) assert.equal((await get(kernel, each, {}, 'DELETE')).status, 200)
  assert.deepEqual([await onDisk(kernel), (await get(kernel, id)).status], [[], 404])
})

test('a sweep removes what has expired and what a dead transfer left, and nothing else', async t => {
  let now = Date.now()
  const kernel = await startTestKernel(t, { packs: [files], now: () => new Date(now), config: { files: { sweep_ms: 10 } } })
  const kept = (await post(kernel, form(file('x')))).data
  const later = (await post(kernel, form(file('x'), field('expires_in_sec', '7200')))).data
  await post(kernel, form(file('x'), field('expires_in_sec', '60')))
  const bytes = join(kernel.home, 'files/bytes')
  const stray = 'f_01ARZ3NDEKTSV4RRFFQ69G5FAV'
  await writeFile(join(bytes, stray), 'half')
  await writeFile(join(bytes, `${stray}2`), 'just now')
  const old = new Date(now - 4_000_000)
  await utimes(join(bytes, stray), old, old)
  for (const { id } of [kept, later]) await utimes(join(bytes, id), old, old)
  now += 61_000
  while ((await onDisk(kernel)).length > 5) await new Promise(resolve => setTimeout(resolve, 2))
  assert.deepEqual((await onDisk(kernel)).sort(), [kept.id, `${kept.id}.json`, later.id, `${later.id}.json`, `${stray}2`].sort())
})

test('of a name that a file brings along its end is kept', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const { name } = (await post(kernel, form(file('x', `${'long'.repeat(100)}.tar.gz`)))).data
  assert.deepEqual([name.length, name.slice(-11)], [255, 'long.tar.gz'])
  const wide = (await post(kernel, form(file('x', `${'😀'.repeat(200)}.txt`)))).data.name
  assert.equal(wide, `${'😀'.repeat(125)}.txt`)
})

test('a file is called as it was, also where its name has what clients may not write into a form', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  for (const [name, kept = name] of [['the "best" 100% of 50%2522.txt'], ["it's; ünï=日本.txt"], ['two\r\nlines', 'two  lines']] as const) {
    const body = new FormData()
    body.append('file', new Blob(['x']), name)
    const request = new Request('http://x', { method: 'POST', body })
    const { data } = await post(kernel, Buffer.from(await request.arrayBuffer()), request.headers.get('content-type') ?? '')
    assert.equal(data.name, kept)
  }
})

test('an upload lives on in another server of the same home', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const { id } = (await post(kernel, form(file('x'), field('expires_in_sec', '3600')))).data
  const other = await startTestKernel(t, { packs: [files], home: kernel.home })
  assert.equal((await get(other, id)).body.toString(), 'x')
})

test('what a form says of name, type and expiry counts to the last character that is allowed', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const upload = async (...parts: readonly Part[]) => {
    const { code, data, details } = await post(kernel, form(...parts))
    return code === 0 ? data : details?.[0]?.path
  }
  const given = async (name: string) => ((await upload(field('name', name), file('x'))) as UploadObject).name

  assert.equal(await given('n'.repeat(255)), 'n'.repeat(255))
  assert.equal(await given('a\u0007b\u007f'), 'a b')
  assert.equal(await upload(field('name', 'n'.repeat(256)), file('x')), 'body.name')
  assert.equal(await upload(field('name', 'n'.repeat(4_097)), file('x')), 'body.name')
  assert.equal(await upload(file('x'), field('expires_in_sec', '0'.repeat(4_097))), 'body.expires_in_sec')
  const { expires_at } = (await upload(file('x'), field('expires_in_sec', ' '), field('more', 'm'.repeat(4_097)))) as UploadObject
  assert.equal(expires_at, undefined)

  const typed = async (content: string) => ((await upload(file('x', 'a', content))) as UploadObject).media_type
  assert.equal(await typed('Text/HTML'), 'text/html')
  assert.equal(await typed(`text/${'x'.repeat(195)}`), `text/${'x'.repeat(195)}`)
  assert.equal(await typed(`text/${'x'.repeat(196)}`), 'application/octet-stream')
})

test('a file whose part names no type is bytes, whatever the other parts name', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  const typed = async (...parts: readonly Part[]) => (await post(kernel, form(...parts))).data.media_type
  const untyped: Part = ['form-data; name="file"; filename="a.png"', 'x']
  const note: Part = ['form-data; name="name"\r\nContent-Type: text/html', 'x']
  assert.equal(await typed(untyped), 'application/octet-stream')
  assert.equal(await typed(note, untyped, note), 'application/octet-stream')
  assert.equal(await typed(['form-data; name="file"; filename="a.png"\r\nContent-Type: ', 'x']), 'application/octet-stream')
  assert.equal(await typed(field('name', 'x'), file('x')), 'text/plain')
})

test('what a browser would show as a page or run is an attachment; images, sounds and videos are shown', async t => {
  const kernel = await startTestKernel(t, { packs: [files] })
  for (const [content, disposition] of [
    ['text/html', 'attachment'],
    ['text/plain', 'attachment'],
    ['application/javascript', 'attachment'],
    ['image/svg+xml', 'inline'],
    ['audio/ogg', 'inline'],
    ['video/mp4', 'inline']
  ] as const) {
    const { id } = (await post(kernel, form(file('x', 'a', content)))).data
    const { headers } = await get(kernel, id)
    assert.ok(String(headers['content-disposition']).startsWith(`${disposition};`), content)
    assert.match(String(headers['content-security-policy']), /^sandbox;/, content)
  }
})
