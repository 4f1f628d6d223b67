/** Secrets in texts: by name, by shape, and known ones in every spelling. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSecretName, redactText, redactUrls, secretsIn, secretsSent, withoutSecrets } from '../../kernel/index.ts'

const secret = 'Hb7wQ2m+/"\\=&xZ9kLr4TqV'

test('names say what is secret, in any spelling', () => {
  const secrets = [
    'api_key',
    'apiKey',
    'X-Api-Key',
    'SEARCH_TOKEN',
    'access_token',
    'clientSecret',
    'passwords',
    'api_keys',
    'Set-Cookie',
    'jwt'
  ]
  const others = ['has_api_key', 'hasApiKey', 'max_tokens', 'output_tokens', 'key', 'keyboard', 'secretary', 'tokenizer', 'code', 'path']
  assert.deepEqual(
    secrets.filter(name => !isSecretName(name)),
    []
  )
  assert.deepEqual(others.filter(isSecretName), [])
})

test('credentials are taken out of texts, what is around them stays', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['curl -H "Authorization: Basic dTpwYXNz" https://h', 'curl -H "Authorization: [redacted]" https://h'],
    ['use Bearer abcdefgh now', 'use Bearer [redacted] now'],
    ['postgres://u:pass@db/x and https://t0ken@git/x', 'postgres://[redacted]@db/x and https://[redacted]@git/x'],
    ['GET /x?api_key=abc&page=2#access_token=def', 'GET /x?api_key=[redacted]&page=2#access_token=[redacted]'],
    [
      "MY_TOKEN='a b' run --password=x --api-key y --verbose",
      'MY_TOKEN=[redacted] run --password=[redacted] --api-key [redacted] --verbose'
    ],
    ['{"private_key":"a\\nb","n":1}', '{"private_key":"[redacted]","n":1}'],
    ['-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nend', '[redacted]\nend'],
    ['Basic authentication, max_tokens=5, page?x=1, a@b', 'Basic authentication, max_tokens=5, page?x=1, a@b'],
    ['providers.p.api_key: expected string', 'providers.p.api_key: expected string']
  ]
  for (const [text, clean] of cases) assert.equal(redactText(text), clean)
})

test('any text can be redacted', () => {
  const pieces = fc.constantFrom(
    '"',
    '\\',
    '\n',
    "'",
    '=',
    '://',
    '@',
    '?key=',
    'token=',
    'Bearer ',
    '--api-key ',
    'x',
    'Authorization: ',
    '"password":"'
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(pieces, fc.string({ maxLength: 8 })), { maxLength: 20 }), parts => {
      assert.doesNotMatch(redactText(`${parts.join('')} token=abcdefgh`), /abcdefgh/)
    }),
    { numRuns: 2000 }
  )
})

test('URLs stay addresses without their credentials', () => {
  assert.equal(redactUrls('https://u:p@h/v1?api_key=a&x=1&sig=b'), 'https://h/v1?api_key=&x=1&sig=')
  assert.equal(redactUrls('see http://h/?subscription-key=a#access_token=b, end'), 'see http://h/?subscription-key=#access_token= end')
  assert.equal(redactUrls('me:pass@host/v1'), 'host/v1')
  for (const other of ['a@b?key=c', 'mailto:a@b', 'to me: a@b', 'host:80/@x', 'npm:@scope/name@1']) assert.equal(redactUrls(other), other)
})

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
