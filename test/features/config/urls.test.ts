/** Credentials in URLs: taken out, and put back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactUrls, restoreUrls } from '../../../features/config/index.ts'

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

test('a long text is looked through for addresses at once, whatever stands in it', () => {
  const given = `x://${'a@'.repeat(30_000)}\\`
  const began = performance.now()
  assert.equal(restoreUrls('x://u@h', given), given)
  assert.ok(performance.now() - began < 1000)
})
