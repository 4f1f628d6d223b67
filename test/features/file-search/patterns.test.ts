/** Regular expressions in the search without ripgrep mean what they mean to it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import type { GrepRequest } from '../../../features/file-search/index.ts'
import { patternOf } from '../../../features/file-search/pattern.ts'
import { findRipgrep } from '../../../features/file-search/ripgrep.ts'

const program = await findRipgrep(process.env)
const lines = [
  'alpha beta',
  '',
  'ÄÖ straße "b" [] {} a-b 12. ü @/',
  '0x ٣x',
  ' 😀 beta_1',
  '\u2028beta\u2028',
  'BETA ẞ \u212a κλ',
  'a\tb  c_d-e^f',
  '(foo)bar|x*y+z?'
]
const text = lines.join('\n')

const request = (pattern: string, more: Partial<GrepRequest> = {}): GrepRequest => ({
  root: '/',
  include_ignored: false,
  mode: 'content',
  ignore_case: false,
  before: 0,
  after: 0,
  multiline: false,
  pattern,
  ...more
})
const here = (asked: GrepRequest) => {
  const pattern = patternOf(asked)
  return (asked.multiline ? [text] : lines)
    .flatMap(line => [...line.matchAll(pattern)].map(([match]) => match))
    .filter(match => match !== '')
}
const there = ({ pattern, ignore_case, multiline, literal }: GrepRequest) => {
  const flags = [...(ignore_case ? ['-i'] : []), ...(multiline ? ['-U', '--multiline-dotall'] : []), ...(literal ? ['-F'] : [])]
  const { stdout, stderr } = spawnSync(program!, ['--no-config', '--crlf', '--json', ...flags, '--regexp', pattern, '-'], { input: text })
  assert.equal(String(stderr), '')
  const said = String(stdout)
    .trim()
    .split('\n')
    .map(row => JSON.parse(row) as { data: { submatches?: { match: { text: string } }[] } })
  return said
    .flatMap(({ data }) => data.submatches ?? [])
    .map(({ match }) => match.text)
    .filter(match => match !== '')
}

test('what a pattern finds is what ripgrep finds', t => {
  if (program === undefined) return t.skip('no ripgrep here')
  for (const pattern of [
    ...[
      'a',
      'a$',
      '^beta',
      'bet.',
      '.beta',
      'beta.',
      '[^a-z]beta',
      'be{1,2}t',
      'b{1}e',
      '(be|x)ta',
      '(?:be|x)(t)a',
      '(?P<name>be)ta',
      '(?<n>be)ta'
    ],
    ...['\\w+ße', '\\W+', '\\d+', '\\D+', '\\s+', '\\S+$', '\\bü', '\\b\\w', '\\Bt', '\\<b', 'a\\>', '\\b{start}b', '\\w\\b{end}'],
    ...['\\p{L}+ß', '\\pL+', '\\PL', '\\p{Lu}', '\\p{Greek}+', '\\P{Latin}x', '\\p{Alphabetic}_', '\\p{Script=Greek}'],
    ...['[[:alpha:]]+x', '[[:^alpha:]b]x', '[[:punct:]]', '[[:word:]]+', '[[:space:][:digit:]]', '[[:letters:]]'],
    ...[
      '[a-c&&[^b]]-',
      '[\\w--b]',
      '[\\w&&[^a-z]]',
      '[]}{]',
      '[^]a]',
      '[-a]',
      '[a-]',
      '[a\\-b]',
      '[^\\n]ta',
      '[😀-😂]',
      '[\\d_]',
      '[/()|*+?.$]'
    ],
    ...[
      '\\"b\\"',
      'a\\-b',
      '\\[\\]',
      '\\{\\}',
      '\\@\\/',
      '}|]',
      '\\x{1F600}',
      '\\u{fc}|\\xfc|\\U000000DF',
      '\\u0041',
      '\\t',
      'a\\x62',
      '\\(foo\\)'
    ],
    ...['(?i)beta', '(?i)k', '(?s)a.', '(?im)^b', 'x\\*y\\+z\\?', '\\^f', 'bar\\|x', 'b|', '(?:)b', 'a+?', 'a*?t', '(a|b)+']
  ])
    assert.deepEqual(here(request(pattern)), there(request(pattern)), pattern)
  for (const pattern of ['ß', 'äö', 'K', '[ẞ]', '[^a-z ]'])
    assert.deepEqual(here(request(pattern, { ignore_case: true })), there(request(pattern, { ignore_case: true })), `${pattern}, any case`)
  for (const pattern of ['[]', '{}', 'a-b', '(foo)bar|x*y+z?', '. ', 'ß', '"b"', '/', '\u2028'])
    assert.deepEqual(here(request(pattern, { literal: true })), there(request(pattern, { literal: true })), `${pattern}, a text`)
  for (const pattern of ['beta\\n', 'a$\\n', '^0x', 'x.+beta', '[^a]+', 'beta\n\nÄ'])
    assert.deepEqual(here(request(pattern, { multiline: true })), there(request(pattern, { multiline: true })), `${pattern}, over lines`)
})

test('what ripgrep does not take for a pattern is refused', () => {
  for (const pattern of [
    ...[
      '(',
      ')',
      'a{',
      'a{2,1}',
      'a{,2}',
      '*',
      '[b-a]',
      '[',
      '[]',
      '[a',
      '[[:alpha:]',
      '(?=x)',
      '(?!x)',
      '(?<=a)x',
      '(?<!a)x',
      '(a)\\1',
      '\\k<n>'
    ],
    ...[
      '\\Q',
      '\\0',
      '\\é',
      '\\e',
      '\\c',
      '\\',
      '[\\',
      '[\\b]',
      'a\\nb',
      'a\nb',
      '[\\n]',
      '[\\w-z]',
      '\\p{Nothing}',
      '\\p',
      '\\x{}',
      '\\x{110000}',
      '\\x{d800}'
    ]
  ]) {
    assert.throws(() => patternOf(request(pattern)), SyntaxError, pattern)
    if (program === undefined) continue
    assert.equal(spawnSync(program, ['--no-config', '--crlf', '--regexp', pattern, '-'], { input: text }).status, 2, pattern)
  }
  assert.throws(() => patternOf(request('a\nb', { literal: true })), SyntaxError)
})
