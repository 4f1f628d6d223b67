import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSamePlace, namesChars, taken } from '../../../features/git/names.ts'

test('where the system spells names in its own way, a name in another case or composed otherwise is the file that git means', () => {
  const [composed, decomposed] = ['/w/Caf\u00e9.txt', '/w/Cafe\u0301.txt']
  assert.ok(isSamePlace(composed, composed, true))
  assert.ok(!isSamePlace(decomposed, composed, true))
  assert.ok(!isSamePlace('/w/readme', '/w/README', true))
  assert.ok(isSamePlace(decomposed, composed, false))
  assert.ok(isSamePlace('/w/caf\u00e9.TXT', decomposed, false))
  assert.ok(!isSamePlace('/elsewhere/readme', '/w/readme', false))
})

test('git gets as many names as the system lets a program have at its start', () => {
  const names = Array.from({ length: 2000 }, (_, at) => `directory/${String(at).padStart(20, '0')}`)
  const given = taken(names, namesChars('win32'))
  assert.deepEqual(given, names.slice(0, given.length))
  const line = given.map(name => `"${name}" `).join('').length
  assert.ok(line > 16_000 && line < 32_767 - 2048, `${line}`)
  assert.equal(taken(names, namesChars('linux')).length, 2000)
})
