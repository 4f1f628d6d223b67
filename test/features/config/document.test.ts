/** Long texts are read part by part as the parser reads the whole, and edits say what was meant. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { copy, put, same, type Table } from '../../../features/config/tables.ts'
import { readToml, TomlProblem } from '../../../features/config/toml.ts'
import { editToml } from '../../../features/config/toml-edit.ts'
import { TomlReader } from '../../../features/config/toml-reader.ts'

/** With the order of keys. */
const shown = (table: Table) => inspect(table, { depth: null })

/** What a text says; or where it is broken. */
async function outcome(read: () => Table | Promise<Table>): Promise<string> {
  try {
    return shown(await read())
  } catch (error) {
    assert.ok(error instanceof TomlProblem)
    return error.message
  }
}

/** Lines that meet each other in many ways, right and wrong. */
const lines = String.raw`[a]
[a.b]
[a.b.c]
 [ a . "b" ] # comment
[[a]]
[[a.b]]
[[list]]
[list.sub]
[list.sub.deep]
['q [x]']
["q\u0041".z]
[b.c]
[__proto__]
[a
x = 1
y = "text" # comment
b = 1
b.c = 1
c.d.e = [1, 2]
list = [
  { k = "]" },
]
long = """
[not.a.table]
"""
path = '''[x]
'''
inline = { a = 1, b = { c = "[d]" } }
when = 2024-01-02T03:04:05Z
early = 07:32:00
date = 1979-05-27 
big = 9007199254740993
float = 1e3
# comment [a]

   
"quoted = key" = true
1 = "number"
bad = "open
odd = "\
`.split('\n')
const line = fc.constantFrom(...lines, '\tcr = 1\r', '# bell \u0007')
const text = fc
  .tuple(fc.constantFrom('', '\uFEFF'), fc.array(line, { maxLength: 12 }), fc.constantFrom('', '\n'))
  .map(([start, all, end]) => start + all.join('\n') + end)

test('a text says what it says as a whole, or is broken at the same place, whatever was read before', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 4 }), async sources => {
      const reader = new TomlReader()
      for (const source of sources) assert.equal(await outcome(() => reader.read(source)), await outcome(() => readToml(source)))
    }),
    { numRuns: 3_000 }
  )
})

test('one version after the other says what it says as a whole', async () => {
  const change = fc.tuple(fc.nat(12), fc.nat(2), fc.array(line, { maxLength: 2 }))
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 12 }), fc.array(change, { maxLength: 6 }), async (first, changes) => {
      const reader = new TomlReader()
      const all = [...first]
      for (const [at, gone, more] of [[0, 0, []] as const, ...changes]) {
        all.splice(at, gone, ...more)
        const source = all.join('\n')
        assert.equal(await outcome(() => reader.read(source)), await outcome(() => readToml(source)))
      }
    }),
    { numRuns: 2_000 }
  )
})

test('a thousand providers are read in parts, in the order of the file', async () => {
  const rows = Array.from({ length: 1_000 }, (_, n) => `[providers.p${n}]\ntype = "x" # ${n}\n[providers.p${n}.env]\nA = "${n}"\n`)
  const source = `# top\ntelemetry = true\n${rows.join('')}[[hooks]]\nevent = "Stop"\n[models.m]\nprovider = "p1"\n[[hooks]]\nevent = "x"`

  assert.equal(shown(await new TomlReader().read(source)), shown(readToml(source)))
})

const name = fc.constantFrom('a', 'b', 'c', 'list', 'x.y', '__proto__')
const value: fc.Arbitrary<unknown> = fc.oneof(fc.integer(), fc.string(), fc.constant([]), fc.constant([1, 'two']), fc.constant('[a]\n'))
const row = fc.dictionary(name, value, { maxKeys: 3 })
const change = fc.tuple(fc.array(name, { minLength: 1, maxLength: 3 }), fc.option(fc.oneof(value, row, fc.array(row, { maxLength: 3 }))))

/** Sets what is at a path, or takes it out; on the way whatever is no table becomes one. */
function apply(table: Table, [name, ...rest]: readonly string[], value: unknown): void {
  const there = Object.hasOwn(table, name!) ? table[name!] : undefined
  if (rest.length > 0) {
    const inner = typeof there === 'object' && !Array.isArray(there) && !(there instanceof Date) ? (there as Table) : {}
    apply(inner, rest, value)
    put(table, name!, inner)
  } else if (value === null) delete table[name!]
  else put(table, name!, value)
}

test('a document that was edited over and over says what was meant, and so does its text', async () => {
  await fc.assert(
    fc.asyncProperty(text, fc.array(change, { maxLength: 6 }), async (source, changes) => {
      const reader = new TomlReader()
      let document = { text: source, table: {} as Table }
      try {
        document.table = readToml(source)
      } catch {
        document.text = ''
      }
      for (const [path, item] of changes) {
        const draft = copy(document.table)
        apply(draft, path, item)
        document = await editToml(document, draft, reader)
        assert.ok(same(document.table, draft))
        assert.equal(shown(document.table), shown(readToml(document.text)))
      }
    }),
    { numRuns: 1_000 }
  )
})
