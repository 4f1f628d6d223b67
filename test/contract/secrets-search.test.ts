/** The search for seeded secrets finds a planted one wherever it stands and however it is written. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Witness } from '../helpers/secret-witness.ts'
import { Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'

test('a secret is found whole, by its beginning and by its end, in every spelling', () => {
  const secrets = new Secrets()
  for (const name of ['plain', 'awkward'] as const) {
    const value = secrets.seed(name, name === 'awkward' ? 'awkward' : '')
    const spellings = [
      value,
      `Incorrect key ${value.slice(0, 12)}****`,
      `key ends in ${value.slice(-12)}`,
      `https://h/?key=${encodeURIComponent(value)}`,
      JSON.stringify({ deep: JSON.stringify({ value }) }),
      Buffer.from(value).toString('hex'),
      ...['', 'u', 'us', 'user:'].map(before => `Basic ${Buffer.from(`${before}${value}@end`).toString('base64')}`),
      Buffer.from(`Bearer ${value}`).toString('base64url')
    ]
    for (const text of spellings) {
      assert.deepEqual(
        secrets.find('here', text).map(leak => leak.secret),
        [name],
        text
      )
    }
    assert.deepEqual(secrets.find('here', value, [name]), [])
    assert.deepEqual(secrets.find('here', value.slice(0, 11)), [])
  }
})

test('a leak planted in an answer, a frame, an output or a file is reported with its place', async () => {
  const home = await freshDir()
  const secrets = new Secrets()
  const witness = new Witness(home, secrets)
  const key = secrets.seed('a key')
  const own = secrets.seed('a token')
  await mkdir(join(home, 'server', 'events'), { recursive: true })
  await mkdir(join(home, 'credentials'))
  await writeFile(join(home, 'server', 'events', 'global.jsonl'), `{"payload":"${key}"}\n`)
  await writeFile(join(home, 'config.toml'), `api_key = "${key}"\n`)
  await writeFile(join(home, 'credentials', 'x.json'), own)

  witness.saw('GET /somewhere', `{"data":"${key}"}`)
  witness.saw('GET /allowed', `{"data":"${key}"}`, ['a key'])
  const leaks = await witness.leaks()

  assert.deepEqual(
    leaks.map(leak => `${leak.where}: ${leak.secret}`),
    ['GET /somewhere: a key', 'server/events/global.jsonl: a key']
  )
})
