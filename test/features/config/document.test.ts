/** Documents in pieces: they read as the parser reads the whole text, and what did not change stays the same object. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { draftOf, settleDraft } from '../../../features/config/sharing.ts'
import { put, same, type Table } from '../../../features/config/tables.ts'
import { readToml, TomlProblem } from '../../../features/config/toml.ts'
import { editToml, openToml, type TomlDocument } from '../../../features/config/toml-document.ts'
import { atOnce } from './at-once.ts'

const open = (text: string, before?: TomlDocument) => atOnce(openToml(text, before))

/** With the order of keys. */
const shown = (table: Table) => inspect(table, { depth: null })

/** What a text says; or where it is broken. */
function outcome(read: () => Table): string {
  try {
    return shown(read())
  } catch (error) {
    assert.ok(error instanceof TomlProblem)
    return error.message
  }
}

/** Undefined for what is not TOML. */
function opened(text: string): TomlDocument | undefined {
  try {
    return open(text)
  } catch (error) {
    assert.ok(error instanceof TomlProblem)
    return undefined
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

test('a document reads as the parser reads the whole text', () => {
  fc.assert(
    fc.property(text, source => {
      assert.equal(
        outcome(() => open(source).table),
        outcome(() => readToml(source))
      )
    }),
    { numRuns: 3_000 }
  )
})

test('a document that takes over from another one reads the same', () => {
  const some = fc.array(line, { maxLength: 6 })
  fc.assert(
    fc.property(some, text, some, text, (head, one, tail, two) => {
      const around = (middle: string) => [...head, middle, ...tail].join('\n')
      const before = opened(around(one))
      assert.equal(
        outcome(() => open(around(two), before).table),
        outcome(() => readToml(around(two)))
      )
    }),
    { numRuns: 3_000 }
  )
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

test('a document that was edited over and over says what was meant, and so does its text', () => {
  fc.assert(
    fc.property(text, fc.array(change, { maxLength: 6 }), (source, changes) => {
      let document = opened(source) ?? open('')
      for (const [path, item] of changes) {
        const draft = draftOf(document.table, () => false)
        apply(draft, path, item)
        const next = atOnce(settleDraft(document.table, draft))
        document = atOnce(editToml(document, next))
        assert.ok(same(document.table, next))
        assert.equal(shown(document.table), shown(readToml(document.text)))
      }
    }),
    { numRuns: 1_000 }
  )
})

const providers = ['one', 'two', 'three'].map(id => `[providers.${id}]\ntype = "x"\nmodels = ["m"]\n`).join('\n')

test('what did not change is the same object in the next document', () => {
  const before = open(`${providers}\n[models.m]\nprovider = "one"\n`)
  const after = open(before.text.replace('[providers.two]\ntype = "x"', '[providers.two]\ntype = "y"'), before)

  const rows = (document: TomlDocument) => document.table.providers as Table
  assert.equal(rows(after).one, rows(before).one)
  assert.notEqual(rows(after).two, rows(before).two)
  assert.equal(rows(after).three, rows(before).three)
  assert.equal(after.table.models, before.table.models)
})

test('a document cannot be changed from outside', () => {
  const { table } = open(`${providers}[[hooks]]\nevent = "Stop"\n`)
  const rows = table.providers as Record<string, { models: string[] }>

  assert.throws(() => put(table, 'new', 1), TypeError)
  assert.throws(() => delete rows.one, TypeError)
  assert.throws(() => rows.one!.models.push('n'), TypeError)
  assert.throws(() => (table.hooks as unknown[]).pop(), TypeError)
})

test('a draft leaves what it was made of alone', () => {
  const before = open(providers)
  const draft = draftOf(before.table, () => false)
  ;(draft.providers as Record<string, { models: string[] }>).one!.models.push('n')

  const next = atOnce(settleDraft(before.table, draft))

  assert.deepEqual((before.table.providers as Table).one, { type: 'x', models: ['m'] })
  assert.deepEqual((next.providers as Table).one, { type: 'x', models: ['m', 'n'] })
  assert.equal((next.providers as Table).two, (before.table.providers as Table).two)
})
