import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSensitive, matchPath, matchText } from '../../../features/tools/index.ts'

test('a text glob spans blanks, slashes and lines, and an escaped text matches itself only', () => {
  assert.ok(matchText('git *', 'git push origin/main\nnow'))
  assert.ok(!matchText('git *', 'gitk'))
  assert.ok(matchText('l?', 'ls'))
  assert.ok(matchText('ls \\*', 'ls *'))
  assert.ok(!matchText('ls \\*', 'ls -la'))
})

test('a hostile text cannot make a glob slow', () => {
  const before = process.cpuUsage()
  assert.ok(!matchText('*a*a*a*a*a*a*a*a*b', 'a'.repeat(20_000)))
  matchPath(`${'{'.repeat(500)}${','.repeat(100_000)}`, '/x', { cwd: '/', home: '/' })
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 1_000_000, `${user + system} µs`)
})

test('a path glob knows segments, double stars, classes and braces, in every form of the path', () => {
  const places = { cwd: '/srv/app', home: '/home/me' }
  const fits = (pattern: string, path: string) => matchPath(pattern, path, places)
  assert.ok(fits('src/*.ts', '/srv/app/src/a.ts'))
  assert.ok(fits('./src/**', '/srv/app/src/deep/er/a.ts'))
  assert.ok(fits('SRC/**/*.{ts,js}', '/srv/app/src/deep/a.JS'))
  assert.ok(fits('src/{id}/*.{ts,js}', '/srv/app/src/{id}/a.js'), 'one choice is none')
  assert.ok(fits('src/{id,\\}/{x,y}', '/srv/app/src/{id,}/y'), 'an escaped brace ends no choice')
  assert.ok(fits('~/notes/[a-c].md', '/home/me/notes/b.md'))
  assert.ok(fits('/srv/**', '/srv/app/x'))
  assert.ok(fits('..secret/*', '/srv/app/..secret/key'))
  assert.ok(!fits('../other/*', '/srv/other/key'))
  assert.ok(!fits('src/*.ts', '/srv/app/src/deep/a.ts'))
  assert.ok(!fits('src/**', '/elsewhere/src/a.ts'))
})

test('sensitive names are known by their base name, whatever the case', () => {
  for (const name of [
    '.env',
    '.ENV',
    'a/.env.local',
    'id_rsa',
    'id_rsa-old',
    'id_rsa_work',
    'credentials.bak',
    'x/.aws/credentials',
    '/any/home/server.token',
    '/home/u/.svc-code/config.toml',
    '/home/u/.svc-code/credentials/a.json',
    '.gcp/credentials/k'
  ])
    assert.ok(isSensitive(name), name)
  for (const name of ['.env.example', 'id_rsa.pub', 'environment', 'credentials.ts', 'my-credentials', '.envrc'])
    assert.ok(!isSensitive(name), name)
})
