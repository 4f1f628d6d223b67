/** How git runs: bounded in time and bytes, ended with its request; the program that knows pull requests alike. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { listFiles } from '../../../features/fs/index.ts'
import { collect } from '../../../features/git/command.ts'
import { GitCache } from '../../../features/git/index.ts'
import { noDescriptors } from '../../helpers/no-descriptors.ts'
import { freshDir } from '../../helpers/temp.ts'
import { repository, setEnv } from './scene.ts'

const signal = new AbortController().signal

/** A program in place of git, which is found first. */
async function standIn(t: Parameters<typeof setEnv>[0], script: string): Promise<string> {
  const dir = await freshDir()
  await writeFile(join(dir, 'git'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  setEnv(t, 'PATH', `${dir}:${process.env.PATH}`)
  return dir
}

/** What a stand-in wrote to a file once it runs. */
async function writtenBy(file: string): Promise<string> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '')
    if (text.endsWith('\n')) return text.trim()
    await new Promise(setImmediate)
  }
}

/** Resolves when no process has this id any more, or one that ended and was not yet asked how. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    if (stdout.trim() === '' || stdout.startsWith('Z')) return
    await new Promise(setImmediate)
  }
}

test('where no descriptor is left for git, it is told as 40908', async t => {
  const dir = await standIn(t, 'echo out')
  const asked = () => collect({ cwd: dir, top: dir, env: { PATH: process.env.PATH } }, ['status'], signal, 1024)
  const again = noDescriptors(t)
  await assert.rejects(asked(), { code: 40908, message: 'git cannot be started' })
  again()
  assert.equal((await asked()).text, 'out\n')
})

test('git that takes longer than 30 s is ended with all that it started, and told as 40908', { timeout: 30_000 }, async t => {
  const dir = await standIn(t, 'sleep 600 & echo $! > "$0.child"; wait')
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ended = collect({ cwd: dir, top: dir, env: { PATH: process.env.PATH } }, ['status'], signal, 1024)
  const child = Number(await writtenBy(join(dir, 'git.child')))
  t.mock.timers.tick(30_000)
  await assert.rejects(ended, { code: 40908, message: 'git took longer than 30000 ms' })
  await gone(child)
})

test('a listing waits 5 s for git, and comes without statuses then', { timeout: 30_000 }, async t => {
  const { kernel, put, params } = await repository(t)
  await put('a', '')
  const dir = await standIn(t, 'echo $$ > "$0.pid"; exec sleep 600')
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const defaults = { depth: 1, limit: 10, show_hidden: false, follow_gitignore: true, runtime_id: 'local' }
  const body = { ...defaults, path: '.', sort: 'name_asc' as const, include_git_status: true }
  const listed = kernel.inject(listFiles, { params, body })
  const pid = Number(await writtenBy(join(dir, 'git.pid')))
  t.mock.timers.tick(5000)
  const { code, data } = await listed
  assert.deepEqual([code, data?.items.map(({ name, git_status }) => [name, git_status])], [0, [['a', undefined]]])
  await gone(pid)
})

test('git that prints more than is wanted is ended, and what it printed is cut', { timeout: 30_000 }, async t => {
  const dir = await standIn(t, 'exec yes')
  const { text, cut } = await collect({ cwd: dir, top: dir, env: { PATH: process.env.PATH } }, ['status'], signal, 1024)
  assert.deepEqual([text.length, cut], [1024, true])
})

test('git ends with the request that asked for it', { timeout: 30_000 }, async t => {
  const { put, token, url, session_id } = await repository(t)
  await put('a', '')
  const dir = await standIn(t, 'echo $$ > "$0.pid"; exec sleep 600')
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const path = `/api/v1/sessions/${session_id}/fs:git_status`
  socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: 0\r\n\r\n`)
  const pid = Number(await writtenBy(join(dir, 'git.pid')))
  socket.destroy()
  await gone(pid)
})

test('without git, and with one that fails, the answer is 40908', async t => {
  const { ask, put } = await repository(t)
  await put('a', '')
  const dir = await standIn(t, 'exit 128')
  assert.equal((await ask('git_status')).code, 40908)
  assert.equal((await ask('diff', { path: 'a' })).code, 40908)
  process.env.PATH = join(dir, 'empty') // `standIn` puts it back
  assert.equal((await ask('git_status')).code, 40908)
})

test('a repository that git does not work in because another user owns it is told with the remedy', async t => {
  const { ask, put, cwd } = await repository(t)
  await put('a', '')
  await standIn(t, 'echo "fatal: detected dubious ownership; git config --global --add safe.directory $PWD" >&2; exit 128')
  const { code, msg } = await ask('git_status')
  assert.equal(code, 40908)
  assert.ok(msg.endsWith(`: git config --global --add safe.directory ${cwd}`), msg)
})

/** A cache over a program that answers with the number of its branch, and the directories of repositories. */
async function cached(script: string, count: number) {
  const dir = await freshDir()
  const program = join(dir, 'program')
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const clock = { now: 0 }
  const ports = { now: () => clock.now, program, allowed: async () => undefined, programMs: 20_000, waitMs: 20_000 }
  const directories: string[] = []
  for (let n = 0; n < count; n++) {
    const place = join(dir, String(n))
    await mkdir(join(place, '.git'), { recursive: true })
    await writeFile(join(place, '.git/HEAD'), `ref: refs/heads/b${n}\n`)
    directories.push(place)
  }
  return { cache: new GitCache(ports), directories, clock, dir, ports }
}

const answer = `echo '{"number":7,"state":"OPEN","url":"https://x.example/7"}'`

test('programs run four at a time, and every directory gets its answer', { timeout: 30_000 }, async () => {
  const script = `cd "$(dirname "$0")"; touch at-$$; ls at-* | wc -l >> seen; ${answer}; rm at-$$`
  const { cache, directories, dir } = await cached(script, 12)
  const facts = await cache.of(directories)
  assert.deepEqual(
    [...facts.values()].map(({ branch, pull_request }) => [branch, pull_request?.number]),
    directories.map((_, n) => [`b${n}`, 7])
  )
  const seen = (await readFile(join(dir, 'seen'), 'utf8')).trim().split('\n').map(Number)
  assert.equal(seen.length, 12)
  assert.ok(Math.max(...seen) <= 4, seen.join(' '))
})

test('a pull request of another branch is not shown while the one of the new branch is looked for', async () => {
  const { cache, directories, clock, dir, ports } = await cached(answer, 1)
  assert.equal((await cache.of(directories)).get(directories[0]!)?.pull_request?.number, 7)
  await writeFile(join(directories[0]!, '.git/HEAD'), 'ref: refs/heads/new\n')
  assert.equal(spawnSync('mkfifo', [join(dir, 'ask')]).status, 0)
  await writeFile(ports.program, `#!/bin/sh\necho asked > "$0.asked"; read _ < ${join(dir, 'ask')}\n${answer}\n`)
  clock.now += 60_000
  ports.waitMs = 0
  await cache.of(directories)
  await writtenBy(`${ports.program}.asked`)
  assert.deepEqual((await cache.of(directories)).get(directories[0]!), { branch: 'new', pull_request: null })
  ports.waitMs = 20_000
  await writeFile(join(dir, 'ask'), 'go\n')
  assert.equal((await cache.of(directories)).get(directories[0]!)?.pull_request?.number, 7)
})
