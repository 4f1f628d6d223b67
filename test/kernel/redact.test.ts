/** Secrets in texts: by name and by shape. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSecretName, redactText, redactUrls, restoreUrls } from '../../kernel/index.ts'

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

test('a URL that was changed as it is shown gets its credentials back, for its own scheme and host alone', () => {
  const stored = 'https://u:p@h:8/v1?api_key=a&x=1#token=b'
  const cases: readonly (readonly [string, string])[] = [
    ['https://h:8/v2?x=2&api_key=', 'https://u:p@h:8/v2?x=2&api_key=a'],
    ['HTTPS://H:8', 'HTTPS://u:p@H:8'],
    ['https://h:8/#token=', 'https://u:p@h:8/#token=b'],
    ['https://h:8?api_key=new', 'https://u:p@h:8?api_key=new'],
    ['https://me@h:8/?api_key=', 'https://me@h:8/?api_key=a'],
    ["curl 'https://h:8/v2' -s", "curl 'https://u:p@h:8/v2' -s"],
    ["curl 'https://h:8'", "curl 'https://u:p@h:8'"]
  ]
  for (const [given, restored] of cases) assert.equal(restoreUrls(stored, given), restored)
  const others = [
    'http://h:8/',
    'https://h/?api_key=',
    "https://h:8'.other/",
    'https://h:8\\.other/',
    'https://h:8@other/',
    'https://h:8.other/'
  ]
  for (const other of others) assert.equal(restoreUrls(stored, other), other)
  for (const other of ['https://h\n.other/', 'https://h",.other/', 'https:other/#https://h/?api_key='])
    assert.equal(restoreUrls('https://u:p@h/?api_key=a', other), other)
})
