import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { mkdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Entry as ZipEntry, ZipFile } from 'yauzl'
import { archiveOf } from '../../../features/export/archive.ts'
import { entryOf } from '../../../features/export/entries.ts'
import exporting from '../../../features/export/pack.ts'
import { createSession } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { openFiles } from '../../helpers/open-files.ts'
import { freshDir } from '../../helpers/temp.ts'

async function scene(t: Parameters<typeof startTestKernel>[0]) {
  const server = await startTestKernel(t, { packs: [workspaces, sessions, exporting] })
  const { data } = await server.call(createSession, { body: { metadata: { cwd: await freshDir() }, title: 'Mine' } })
  const dir = join(server.home, 'sessions', data.workspace_id, data.id)
  const ask = (body: unknown, id = data.id) =>
    server.rest.raw('POST', `/api/v1/sessions/${id}/export`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
  return { ...server, id: data.id, dir, ask }
}

/** Every file of an archive by its name; two of one name fail. */
async function unzip(bytes: Buffer): Promise<Map<string, Buffer>> {
  const { default: yauzl } = await import('yauzl')
  const zip = await new Promise<ZipFile>((resolve, reject) =>
    yauzl.fromBuffer(bytes, { lazyEntries: true, strictFileNames: true }, (error, file) => (error ? reject(error) : resolve(file)))
  )
  const found = new Map<string, Buffer>()
  const end = new Promise<void>((resolve, reject) => zip.once('end', resolve).once('error', reject))
  zip.on('entry', (entry: ZipEntry) =>
    zip.openReadStream(entry, async (_error, stream) => {
      assert.ok(!found.has(entry.fileName))
      found.set(entry.fileName, await buffer(stream))
      zip.readEntry()
    })
  )
  zip.readEntry()
  await end
  return found
}

test('the archive has a manifest and the files of the session; no lock, no link, no file of a write under way', async t => {
  const { ask, dir, id, home } = await scene(t)
  await mkdir(join(dir, 'agents', 'main', 'blobs'), { recursive: true })
  const image = Buffer.from([0, 255, 1, 254, 10, 13])
  await writeFile(join(dir, 'agents', 'main', 'blobs', 'picture'), image)
  await writeFile(join(dir, 'agents', 'main', 'wire.jsonl'), '{"type":"metadata"}\n{"type":"torn')
  await writeFile(join(dir, 'agents', 'main', 'odd\\name'), 'x')
  await writeFile(join(dir, 'agents', 'main', 'empty'), '')
  await writeFile(join(dir, 'state.json~'), 'half')
  await writeFile(join(dir, 'waiting'), 'of the process')
  await writeFile(join(home, 'outside'), 'not yours')
  await symlink(join(home, 'outside'), join(dir, 'agents', 'main', 'link'))
  await symlink(home, join(dir, 'agents', 'everything'))

  const answer = await ask({ web_log: 'page opened' })

  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'application/zip')
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.match(String(answer.headers['content-disposition']), new RegExp(`^attachment; filename="svc-session-${id}.zip"$`))
  const files = await unzip(answer.body)
  const expected = ['agents/main/blobs/picture', 'agents/main/empty', 'agents/main/odd_name', 'agents/main/wire.jsonl']
  assert.deepEqual([...files.keys()].sort(), [...expected, 'logs/svc-web.jsonl', 'manifest.json', 'state.json'])
  assert.deepEqual(files.get('agents/main/blobs/picture'), image)
  assert.equal(String(files.get('agents/main/wire.jsonl')), '{"type":"metadata"}\n')
  assert.equal(String(files.get('logs/svc-web.jsonl')), 'page opened')
  const manifest = JSON.parse(String(files.get('manifest.json')))
  assert.deepEqual([manifest.sessionId, manifest.title, manifest.webLogPath], [id, 'Mine', 'logs/svc-web.jsonl'])
  assert.equal(JSON.parse(String(files.get('state.json'))).id, id)
})

test('the manifest names the logs that are in the archive, and no others', async t => {
  const { ask, home } = await scene(t)
  const logs = join(home, 'logs')
  await mkdir(logs, { recursive: true })
  const named = async () => {
    const files = await unzip((await ask({ desktop: true })).body)
    const manifest = JSON.parse(String(files.get('manifest.json')))
    const paths = [manifest.globalLogPath, manifest.desktopLogPath]
    assert.deepEqual(
      paths.filter(path => path !== undefined),
      [...files.keys()].filter(name => name.startsWith('logs/'))
    )
    return paths
  }

  assert.deepEqual(await named(), [undefined, undefined])
  await writeFile(join(logs, 'svc-desktop.log'), 'line\n')
  assert.deepEqual(await named(), [undefined, 'logs/svc-desktop.log'])
  await writeFile(join(logs, 'svc-code.log'), 'line\n')
  assert.deepEqual(await named(), ['logs/global/svc-code.log', 'logs/svc-desktop.log'])
})

test('secrets are left out of texts, also on the borders of what is read, and lines stay JSON', async t => {
  const { ask, dir, home, token } = await scene(t)
  await mkdir(join(home, 'credentials'), { recursive: true })
  await writeFile(join(home, 'credentials', 'x.json'), JSON.stringify({ access_token: 'tok-4711-very-secret' }))
  await mkdir(join(dir, 'agents', 'main'), { recursive: true })
  const record = (text: string) => `${JSON.stringify({ type: 'message', text })}\n`
  const long = `${'y'.repeat(65_530)}tok-4711-very-secret${'y'.repeat(65_000)}`
  const lines = [
    record(`the token "${token}" and tok-4711-very-secret`),
    ...Array.from({ length: 2000 }, (_, n) => record(`${'z'.repeat(n % 97)} tok-4711-very-secret`)),
    record(long),
    record('Authorization: Bearer abcdefgh12345678'),
    record('über 𝄞')
  ]
  await writeFile(join(dir, 'agents', 'main', 'wire.jsonl'), lines.join(''))

  const files = await unzip((await ask({ web_log: `sent ${token}` })).body)

  const wire = String(files.get('agents/main/wire.jsonl'))
  for (const secret of [token, 'tok-4711', 'abcdefgh12345678']) assert.ok(!wire.includes(secret), secret)
  assert.ok(!String(files.get('logs/svc-web.jsonl')).includes(token))
  const texts = wire
    .trimEnd()
    .split('\n')
    .map(line => (JSON.parse(line) as { text: string }).text)
  assert.equal(texts.length, lines.length)
  assert.equal(texts.at(-1), 'über 𝄞')
  assert.ok((texts.at(-3)?.length ?? 0) > 130_000)
  assert.ok((await readFile(join(dir, 'agents', 'main', 'wire.jsonl'), 'utf8')).includes('tok-4711'))
})

test('an archive is whole also when it was ready long before anybody read it', async () => {
  const archive = await archiveOf([{ name: 'a.txt', text: 'words', kind: 'text' }], [], [])
  for (let pass = 0; pass < 50; pass++) await setImmediate()
  const files = await unzip(await buffer(archive))
  assert.equal(String(files.get('a.txt')), 'words')
})

test('a file that is being opened when nobody wants the archive any more is closed', async () => {
  const dir = await realpath(await freshDir())
  const file = join(dir, 'picture')
  await writeFile(file, randomBytes(1024 * 1024))
  const passed = new EventEmitter()
  const gone = once(passed, 'end', { signal: AbortSignal.timeout(5000) })
  async function* entries() {
    process.nextTick(() => archive.destroy()) // when it is asked for, and before it is open
    yield entryOf('picture', file)
    passed.emit('end')
  }
  const archive = await archiveOf([], [{ root: dir, entries: entries() }], [])
  await gone
  assert.equal(await openFiles(dir), 0)
})

test('failures are envelopes: an unknown session, a log that is too large, a body that is none', async t => {
  const { ask } = await scene(t)
  const codeOf = async (body: unknown, session?: string) => JSON.parse(String((await ask(body, session)).body)).code
  assert.equal(await codeOf({}, 'session_nobody'), 40401)
  assert.equal(await codeOf({ web_log: 'ü'.repeat(131_073) }), 40001)
  assert.equal(await codeOf({ web_log: 1 }), 40001)
  assert.equal(await codeOf({ more: 1 }), 40001)
  assert.equal(await codeOf([]), 40001)
  assert.equal((await ask({ web_log: 'ü'.repeat(131_072) })).headers['content-type'], 'application/zip')
})
