/** Secrets that are known: taken out of texts in every spelling. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretsIn, secretsSent, withoutSecrets } from '../../../features/llm/index.ts'

const secret = 'Hb7wQ2m+/"\\=&xZ9kLr4TqV'

test('a known secret is taken out in every spelling, also when only its beginning was quoted', () => {
  const spellings = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret),
    JSON.stringify(JSON.stringify({ secret })),
    `${secret.slice(0, 14)}****`,
    secret.replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
    ...['', 'u', 'u:', 'me:'].map(before => Buffer.from(before + secret).toString('base64'))
  ]
  for (const spelling of spellings) {
    const clean = withoutSecrets(`said: ${spelling} , end`, [undefined, `Bearer ${secret}`])
    assert.doesNotMatch(clean, /Hb7w|TqV|SGI3|I3d|iN3/, spelling)
    assert.match(clean, /^said: .*\[redacted\].* , end$/)
  }
  for (const end of ['', '…', '...']) assert.equal(withoutSecrets(`cut: ${secret.slice(0, 7)}${end}`, [secret]), `cut: [redacted]${end}`)
  assert.equal(withoutSecrets('an o.k. key', ['k', '', undefined]), 'an o.k. key')
})

test('a long text of base64 is gone through once', () => {
  const picture = 'iVBORw0KGgo'.repeat(10_000)
  const before = process.cpuUsage()
  const clean = withoutSecrets(`${picture} ${Buffer.from(secret).toString('base64')} ${picture}`, [secret])
  const { user, system } = process.cpuUsage(before)
  assert.equal(clean, `${picture} [redacted] ${picture}`)
  assert.ok(user + system < 2_000_000, `${user + system} µs`)
})

test('a URL names its secrets', () => {
  assert.deepEqual(secretsIn('https://u:a%20b@h/?x=1&token=c%2Fd'), ['a%20b', 'a b', 'c/d'])
  assert.deepEqual([secretsIn(undefined), secretsIn('no url'), secretsIn('https://h/')].flat().filter(Boolean), [])
})

test('a request names what an answer must not repeat: long credentials, not words', () => {
  const headers = {
    authorization: 'Bearer abcdefghij123456',
    'x-team': 'a-team-with-a-long-name',
    'x-org': 'org0123456789abcdef',
    accept: 'application/json'
  }
  assert.deepEqual(secretsSent('https://h/?token=0123456789abcdef&x=0123456789abcdef', headers), [
    'abcdefghij123456',
    'org0123456789abcdef',
    '0123456789abcdef'
  ])
  assert.deepEqual(secretsSent('https://h/', { authorization: 'Bearer ollama' }), [])
})
