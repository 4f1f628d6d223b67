/** One home, several server processes: who renews, and what a `kill -9` in the middle leaves behind. */
import assert from 'node:assert/strict'
import { watch } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startChild } from '../../helpers/child.ts'
import { type FakeScript, fakeOauth, granted, refused } from '../../helpers/fake-oauth.ts'
import { freshDir } from '../../helpers/temp.ts'

/** A home whose login is due. */
async function homeWithLogin() {
  const home = await freshDir()
  const file = join(home, 'credentials', 'svc-code.json')
  await mkdir(join(home, 'credentials'), { mode: 0o700 })
  const credential = { access_token: 'first', refresh_token: 'refresh-token-0', scope: '', token_type: 'Bearer', expires_in: 3600 }
  await writeFile(file, JSON.stringify({ ...credential, expires_at: Date.now() / 1000 - 1 }), { mode: 0o600 })
  return { home, file }
}

test('servers that find the login due at the same moment ask once', async t => {
  const { home } = await homeWithLogin()
  let answer: () => void = () => undefined
  const held = new Promise<void>(resolve => {
    answer = resolve
  })
  const fake = await fakeOauth(t, {
    refresh: async () => {
      await held
      return granted('shared')
    }
  })
  const servers = [1, 2, 3].map(() => startChild(t, 'login', home, fake.oauth_host))
  await Promise.all(servers.map(server => server.atLeast(1)))

  for (const server of servers) server.say('token')
  await fake.reached('refresh', 1)
  answer()
  await Promise.all(servers.map(server => server.atLeast(2)))

  assert.deepEqual(
    servers.map(({ lines }) => lines[1]),
    ['access-token-shared', 'access-token-shared', 'access-token-shared']
  )
  assert.equal(fake.asked('refresh').length, 1)
})

/** Each refresh token counts until its successor was used: what was lost on the way to the client can be asked for again. */
function rotating(lost: () => boolean): FakeScript {
  let good = ['refresh-token-0']
  let issued = 0
  return ({ form }) => {
    const used = form.refresh_token ?? ''
    if (!good.includes(used)) return refused('invalid_grant')
    issued++
    good = [used, `refresh-token-${issued}`]
    return lost() ? { hang: true } : granted(issued)
  }
}

test('a server that is killed at any moment of a renewal leaves a login that the next one renews', async t => {
  const { home, file } = await homeWithLogin()
  let lost = true
  const fake = await fakeOauth(t, { refresh: rotating(() => lost) })

  const left: string[] = []
  for (const step of ['unanswered', 'svc-code.json.lock', 'svc-code.json~', 'svc-code.json']) {
    const server = startChild(t, 'login', home, fake.oauth_host)
    await server.atLeast(1)
    const asked = fake.asked('refresh').length + 1
    const reached = new Promise<void>(resolve => {
      const watcher = watch(join(home, 'credentials'), (_, name) => {
        if (name === step && fake.asked('refresh').length >= asked) resolve()
      })
      t.after(() => watcher.close())
    })
    lost = step === 'unanswered'
    server.say('force')
    await fake.reached('refresh', asked)
    if (!lost) await reached
    await server.kill()
    const stored = JSON.parse(await readFile(file, 'utf8')) as { refresh_token: string }
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    left.push(stored.refresh_token)
  }
  assert.equal(left[0], 'refresh-token-0')
  assert.equal(left[3], 'refresh-token-4')
  const last = startChild(t, 'login', home, fake.oauth_host)
  await last.atLeast(1)
  last.say('force')
  await last.atLeast(2)

  assert.match(last.lines[1] ?? '', /^access-token-\d+$/)
})
