/** Where plugins come from, as users write it, and which redirects on the way there are followed. */
import assert from 'node:assert/strict'
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import type { ZipFile } from 'yazl'
import { DownloadProblem, downloadTo, refToTake } from '../../../features/plugins/download.ts'
import { archiveUrl, placeOf } from '../../../features/plugins/source.ts'
import { copyTree, unzip } from '../../../features/plugins/unpack.ts'
import { ValidationFailed } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'
import { archive } from './scene.ts'

const hosts = ['https://code.example']
const base = 'https://code.example/o/r'

test('a directory, an archive, or a repository with what is wanted of it', () => {
  const repo = (ref?: object) => ({ kind: 'repo', base, owner: 'o', repo: 'r', ref })
  const cases: readonly (readonly [source: string, place: object])[] = [
    [' /srv/plugin ', { kind: 'local-path', path: '/srv/plugin' }],
    ['https://files.example/a.zip?x=1', { kind: 'zip-url', url: 'https://files.example/a.zip?x=1' }],
    [base, repo()],
    [`${base}.git`, repo()],
    ['https://www.code.example/o/r/', repo()],
    [`${base}/tree/main`, repo({ kind: 'branch', value: 'main' })],
    [`${base}/tree/feature/x`, repo({ kind: 'branch', value: 'feature/x' })],
    [`${base}/tree/0123abc`, repo({ kind: 'sha', value: '0123abc' })],
    [`${base}/commit/0123abc`, repo({ kind: 'sha', value: '0123abc' })],
    [`${base}/releases/tag/pack/v1`, repo({ kind: 'tag', value: 'pack/v1' })],
    [`${base}/releases/download/v1/a.zip`, { kind: 'zip-url', url: `${base}/releases/download/v1/a.zip` }]
  ]
  for (const [source, place] of cases) assert.deepEqual(placeOf(source, hosts), place, source)
})

test('what is none of these, or holds a credential, is refused', () => {
  const wrong = ['plugin', '/srv/a\0b', 'https://', 'https://me@files.example/a.zip', 'https://:word@files.example/a.zip']
  for (const source of [...wrong, 'https://code.example/o', 'https://code.example/.../r', 'https://code.example/o%20o/r'])
    assert.throws(() => placeOf(source, hosts), { spec: ValidationFailed }, source)
})

test('the archive of a repository is asked for by branch, tag, commit or the newest of all', () => {
  assert.equal(archiveUrl(base, { kind: 'tag', value: 'a b/v#1' }), `${base}/archive/refs/tags/a%20b/v%231.zip`)
  assert.equal(archiveUrl(base, { kind: 'branch', value: 'main' }), `${base}/archive/refs/heads/main.zip`)
  assert.equal(archiveUrl(base, { kind: 'branch', value: 'HEAD' }), `${base}/archive/HEAD.zip`)
  assert.equal(archiveUrl(base, { kind: 'sha', value: '0123abc' }), `${base}/archive/0123abc.zip`)
})

test('the tag of the newest release is named as people write it', async () => {
  const get = async () => ({ status: 302, headers: { location: `${base}/releases/tag/pack%2Fv1%2B2?x=1` }, body: Readable.from([]) })
  const ports = { upstream: { get }, userAgent: 'test', signal: new AbortController().signal }

  assert.deepEqual(await refToTake(base, undefined, ports as unknown as Parameters<typeof refToTake>[2]), {
    ref: { kind: 'tag', value: 'pack/v1+2' },
    url: `${base}/archive/refs/tags/pack/v1%2B2.zip`
  })
})

test('what is copied keeps its right to run; another name is another digest; directories that never end are refused', async () => {
  const { signal } = new AbortController()
  const [one, two, into] = [await freshDir(), await freshDir(), await freshDir()]
  await writeFile(join(one, 'run'), 'x', { mode: 0o755 })
  await writeFile(join(two, 'walk'), 'x', { mode: 0o644 })
  const digests = [await copyTree(one, join(into, 'one'), signal), await copyTree(two, join(into, 'two'), signal)]
  const modes = [await stat(join(into, 'one', 'run')), await stat(join(into, 'two', 'walk'))].map(({ mode }) => mode & 0o777)

  assert.deepEqual([digests[0] === digests[1], modes], [false, [0o700, 0o600]])
  await symlink('.', join(one, 'again'))
  await assert.rejects(copyTree(one, join(into, 'three'), signal), /too deep/)
})

test('what is unpacked keeps its right to run', async () => {
  const into = await freshDir()
  const file = join(into, 'a.zip')
  const change = (zip: ZipFile) => zip.addBuffer(Buffer.from('x'), 'run', { mode: 0o100755 })
  await writeFile(file, await archive({ walk: 'x' }, '', change))
  await mkdir(join(into, 'files'))
  await unzip(file, join(into, 'files'), new AbortController().signal)

  const modes = [await stat(join(into, 'files', 'run')), await stat(join(into, 'files', 'walk'))].map(({ mode }) => mode & 0o777)
  assert.deepEqual(modes, [0o700, 0o600])
})

test('a redirect to a safer place is followed, one from https to http or elsewhere is not', async () => {
  const dir = join(await freshDir(), 'files')
  await mkdir(dir)
  const from = async (url: string, location: string) => {
    const asked: string[] = []
    const get = async (address: string) => {
      asked.push(address)
      const first = asked.length === 1
      return { status: first ? 302 : 200, headers: first ? { location } : {}, body: Readable.from(['bytes']) }
    }
    const ports = { upstream: { get }, userAgent: 'test', signal: new AbortController().signal }
    const file = join(dir, encodeURIComponent(url + location))
    const failure = await downloadTo(file, url, ports as unknown as Parameters<typeof downloadTo>[2]).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.ok(failure === undefined || failure instanceof DownloadProblem, String(failure))
    return [failure === undefined, asked.length]
  }

  assert.deepEqual(await from('http://a.example/x.zip', 'https://b.example/x.zip'), [true, 2])
  assert.deepEqual(await from('https://a.example/x.zip', '/y.zip'), [true, 2])
  for (const location of ['http://a.example/x.zip', 'file:///etc/passwd', 'http://'])
    assert.deepEqual(await from('https://a.example/x.zip', location), [false, 1], location)
})
