/** Secrets in texts: by name and by shape. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSecretName, redactText } from '../../kernel/index.ts'

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
    fc.property(fc.array(fc.oneof(pieces, fc.string({ maxLength: 8 })), { maxLength: 20 }), fc.boolean(), (parts, isProse) => {
      assert.doesNotMatch(redactText(`${parts.join('')} token=abcdefgh`, isProse), /abcdefgh/)
    }),
    { numRuns: 2000 }
  )
})
