/** Edits in place: comments, order and layout stay, and every result reads back as what was meant. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'smol-toml'
import { copy, type Table } from '../../../features/config/tables.ts'
import { readToml, TomlProblem } from '../../../features/config/toml.ts'
import { editToml } from '../../../features/config/toml-edit.ts'

const text = `# Settings of mine

# model
default_model = "a/b" # best
when = 2024-01-02T03:04:05Z
big = 9007199254740993
extra_skill_dirs = [ # dirs
  "/a", # first
  "/b",
]
odd.dotted.key = 1 # dotted

# providers here
[providers."x/y"] # hi
api_key = "k" # key
[providers.z]
type = 'svc'

# the hooks
[[hooks]]
event = "Stop" # stop
command = "x"
# end of hooks

[packs]
load = ["a", "b"] # mine
`

const written = async (text: string, next: Table) => (await editToml({ text, table: readToml(text) }, next)).text

async function edited(change: (table: Table) => void): Promise<string> {
  const next = copy(readToml(text))
  change(next)
  const result = await written(text, next)
  assert.deepEqual(readToml(result), readToml(stringify(next)))
  return result
}

test('a changed value changes its own characters only', async () => {
  const result = await edited(table => {
    table.default_model = 'c/d'
    ;(table.providers as Record<string, Table>)['x/y']!.api_key = 'new'
    ;(table.hooks as Table[])[0]!.command = 'y'
  })
  assert.equal(result, text.replace('"a/b"', '"c/d"').replace('"k"', '"new"').replace('"x"', '"y"'))
})

test('a renamed table keeps its place, its comments and what is below it', async () => {
  const result = await edited(table => {
    const { 'x/y': first, z } = table.providers as Record<string, Table>
    table.providers = { 'new name': { ...first, type: 'svc', oauth: { key: 'q' } }, z }
  })
  assert.equal(
    result,
    text.replace(
      '[providers."x/y"] # hi\napi_key = "k" # key\n',
      '[providers."new name"] # hi\napi_key = "k" # key\ntype = "svc"\n\n[providers."new name".oauth]\nkey = "q"\n\n'
    )
  )
})

test('a renamed value keeps its line and its comment, next to others that change', async () => {
  const before = '[pool]\n# cheap\n"p/a" = "one" # first\n"q/b" = "two"\nc.d = 1\n'
  const next = { pool: { 'n p/a': 'one', 'q/b': 'three', c: { e: 1 } } }
  const after = '[pool]\n# cheap\n"n p/a" = "one" # first\n"q/b" = "three"\nc.e = 1\n'
  assert.equal(await written(before, next), after)
})

test('new lines and tables come behind a renamed table, also where another one goes', async () => {
  const before = '# mine\n[m.a] # a\nx = 1\n[m.b]\ny = 1\n# end\n'
  const after = '# mine\n[m.c] # a\nx = 1\nz = 2\n\n[m.c.in]\nq = 1\n\n# end\n'
  assert.equal(await written(before, { m: { c: { x: 1, z: 2, in: { q: 1 } } } }), after)
})

test('a renamed table whose inner tables go keeps its place and comments, and so does everything else', async () => {
  const before = '# mine\n[m."p/a"] # a\nx = 1\n\n[m."p/a".cost] # c\ninput = 1\n\n[n]\ny = 1 # y\n'
  assert.equal(await written(before, { m: { 'p/b': { x: 1 } }, n: { y: 1 } }), '# mine\n[m."p/b"] # a\nx = 1\n\n[n]\ny = 1 # y\n')
})

test('a renamed table in lines of another one keeps its lines and their comments, in one of its own or in several', async () => {
  const dotted = '# mine\np.a.x = 1 # x\n[p.a.sub] # s\ny = 2\n'
  const next = { p: { b: { x: 1, z: 3, sub: { y: 2 } } } }
  assert.equal(await written(dotted, next), '# mine\np.b.x = 1 # x\np.b.z = 3\n[p.b.sub] # s\ny = 2\n')

  const inlined =
    '[p]\n# cheap\nwork = { type = "t", n = 1 } # mine\n"x y".q = 2 # dotted\n[m]\n"work/a" = { provider = "work", n = 1 } # a\n'
  const renamed = { p: { home: { type: 't', n: 1 }, z: { q: 2 } }, m: { 'home/a': { provider: 'home', n: 1 } } }
  assert.equal(
    await written(inlined, renamed),
    '[p]\n# cheap\nhome = { type = "t", n = 1 } # mine\nz.q = 2 # dotted\n[m]\n"home/a" = { provider = "home", n = 1 } # a\n'
  )
})

test('new keys join their table and new tables their kin', async () => {
  const result = await edited(table => {
    table.telemetry = true
    ;(table.providers as Record<string, Table>)['x/y']!.type = 'svc'
    ;(table.providers as Record<string, Table>).n = { type: 'compat_chat', oauth: { key: 'q' } }
    ;(table.hooks as Table[]).push({ event: 'Stop', command: 'z' })
    ;(table.odd as Record<string, Table>).dotted!.more = 2
    table.loop_control = { max_steps_per_turn: 3 }
  })
  const expected = text
    .replace('# dotted\n', '# dotted\nodd.dotted.more = 2\ntelemetry = true\n')
    .replace('# key\n', '# key\ntype = "svc"\n')
    .replace("type = 'svc'\n", 'type = \'svc\'\n\n[providers.n]\ntype = "compat_chat"\n\n[providers.n.oauth]\nkey = "q"\n')
    .replace('command = "x"\n', 'command = "x"\n\n[[hooks]]\nevent = "Stop"\ncommand = "z"\n\n')
  assert.equal(result.replace(/\n{2,}/g, '\n'), `${expected}\n[loop_control]\nmax_steps_per_turn = 3\n`.replace(/\n{2,}/g, '\n'))
})

test('a removed table takes its lines and nobody else with it', async () => {
  const result = await edited(table => {
    delete (table.providers as Table).z
    delete table.when
  })
  assert.equal(result, text.replace('when = 2024-01-02T03:04:05Z\n', '').replace("[providers.z]\ntype = 'svc'\n", ''))
})

test('what was put in and taken out again leaves the text as it was, blank lines too', async () => {
  const model = { 'p/m': { provider: 'p', model: 'm' } }
  const texts = [
    '',
    'a = 1\n',
    'a = 1\r\n',
    '# only\n',
    '# mine\n[packs]\nb = 2\n',
    'x = 1\n\n[t]\ny = 1\n# end  \n',
    '[providers]\nq.type = "svc"\n'
  ]
  for (const text of texts) {
    const before = readToml(text)
    const { providers } = before as { providers?: Table }
    const next = { default_model: 'p/m', ...copy(before), providers: { ...providers, p: { type: 'svc' } }, models: model }
    assert.equal(await written(await written(text, next), before), text)
  }
  assert.equal(await written('a = 1\n\nb = 2\n\nc = 3\n', { a: 1, c: 3 }), 'a = 1\n\nc = 3\n')
})

test('line breaks stay of their kind in a text that does not end with one', async () => {
  const before = 'a = 1\r\nb = 2'
  assert.equal(await written(before, { a: 1, b: 2, c: 3 }), 'a = 1\r\nb = 2\r\nc = 3\r\n')
})

test('what the text says is never part of a problem', () => {
  for (const bad of [
    'api_key = sk-hidden',
    'api_key = "sk-hidden\n',
    '["sk-hidden"]\n["sk-hidden"]',
    'a."sk-hidden" = 1\na."sk-hidden" = 2'
  ]) {
    assert.throws(
      () => readToml(bad),
      error => error instanceof TomlProblem && error.line > 0 && !error.message.includes('sk-hidden')
    )
  }
})

const key = fc.constantFrom('a', 'b', 'c c', 'hooks', 'd.e', '__proto__')
const scalar = fc.oneof(fc.integer(), fc.boolean(), fc.string(), fc.constant('"#\n\\'), fc.double({ noNaN: true, noDefaultInfinity: true }))
const { table } = fc.letrec<{ table: Table; value: unknown }>(tie => ({
  table: fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map(pairs => copy(Object.fromEntries(pairs))),
  value: fc.oneof({ maxDepth: 3 }, scalar, fc.array(scalar, { maxLength: 3 }), fc.array(tie('table'), { maxLength: 3 }), tie('table'))
}))

test('any content turns into any other, in place', async () => {
  await fc.assert(
    fc.asyncProperty(table, table, fc.boolean(), async (before, next, mine) => {
      const start = mine ? text : `# Settings of mine\n${stringify(before)}`
      const to = mine ? { ...copy(readToml(start)), ...next } : next
      const result = await written(start, to)
      assert.deepEqual(readToml(result), readToml(stringify(to)))
      assert.ok(result.includes('# Settings of mine\n'), 'a document that is written anew has no comments')
    }),
    { numRuns: 300 }
  )
})
